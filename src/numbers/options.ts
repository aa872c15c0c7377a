import { checkKnownOptions, choiceOption, integerOption, nameOption } from '../options.js'
import { type NumbersOptions, TENANT_ORDERS, type TenantOrder } from './numbers.js'

/** Full minutes before the current one: what is older is forgotten. The functions of the schema have the bounds too. */
export const MINUTES = { min: 0, max: 60 } as const
export const MINUTES_DEFAULT = 5

/** Waiting jobs that are counted: half a million take about as long as a person is willing to wait. */
export const COUNT_MAX = { min: 1, max: 100_000_000 } as const
export const COUNT_MAX_DEFAULT = 500_000

export interface TenantsOptions extends NumbersOptions {
  /** 1 to 255 bytes. Default 'default'. */
  readonly queue?: string
  /** Which tenants come first. Default `backlog`. */
  readonly sort?: TenantOrder
}

export interface QueuesOptions extends NumbersOptions {
  /** Only this one, 1 to 255 bytes. Default: all. */
  readonly queue?: string
}

export function tenantsOptions(options: TenantsOptions) {
  checkKnownOptions('tenants', options, ['queue', 'sort', 'minutes', 'countMax'])
  const { queue = 'default', sort = 'backlog' } = options
  return {
    queue: nameOption('queue', queue),
    sort: choiceOption('sort', sort, TENANT_ORDERS),
    numbers: numbersOptions(options),
  }
}

export function queuesOptions(options: QueuesOptions) {
  checkKnownOptions('queues', options, ['queue', 'minutes', 'countMax'])
  const { queue } = options
  return { queue: queue === undefined ? null : nameOption('queue', queue), numbers: numbersOptions(options) }
}

function numbersOptions({ minutes = MINUTES_DEFAULT, countMax = COUNT_MAX_DEFAULT }: NumbersOptions) {
  return {
    minutes: integerOption('minutes', minutes, MINUTES),
    countMax: integerOption('countMax', countMax, COUNT_MAX),
  }
}
