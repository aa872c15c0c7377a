import { checkKnownOptions, choiceOption, expected, integerOption, nameOption, numberOption } from '../options.js'
import {
  CHARGES,
  type GroupSettings,
  HISTORY_MODES,
  type KeySettings,
  type KindSettings,
  type Objective,
  type QueueSettings,
  type RateLimit,
  type SettingsChange,
  STRATEGIES,
  type TenantSettings,
} from './settings.js'

/** The bounds of numbers. The functions of the schema have them too, and refuse with the same sentences. */
export const WEIGHT = { min: 0.001, max: 1_000 } as const
export const CONCURRENCY = { min: 0, max: 1_000_000 } as const
export const QUOTA = { min: 0, max: 1_000_000_000 } as const
export const RATE = { min: 0.000001, max: 1_000_000 } as const
export const RATE_LIMIT = { min: 0.000001, max: 1_000_000_000 } as const
export const RATE_PER_MS = { min: 1, max: 1_000_000_000 } as const
export const BURST = { min: 1, max: 1_000_000 } as const
export const OBJECTIVE_WAIT_MS = { min: 1, max: 86_400_000 } as const
export const OBJECTIVE_SHARE = { min: 0.5, max: 0.9999 } as const

/** Refuses a value with a sentence that names it and the range; answers with the value. */
export type Check = (name: string, value: unknown) => unknown
type Checks<Settings> = Readonly<Record<keyof Settings, Check>>

const weight: Check = (name, value) => numberOption(name, value, WEIGHT)
const concurrency: Check = (name, value) => integerOption(name, value, CONCURRENCY)
const quota: Check = (name, value) => integerOption(name, value, QUOTA)

const QUEUE: Checks<QueueSettings> = {
  strategy: (name, value) => choiceOption(name, value, STRATEGIES),
  history: (name, value) => choiceOption(name, value, HISTORY_MODES),
  charge: (name, value) => choiceOption(name, value, CHARGES),
  concurrency,
  rate: rateOption,
  quota,
  tenantConcurrency: concurrency,
  tenantRate: rateOption,
  tenantQuota: quota,
  keyConcurrency: concurrency,
  keyRate: rateOption,
  objective: objectiveOption,
}

const TENANT: Checks<TenantSettings> = {
  weight,
  group: nameOption,
  concurrency,
  rate: rateOption,
  quota,
  objective: objectiveOption,
}

const GROUP: Checks<GroupSettings> = { weight, objective: objectiveOption }
const KIND: Checks<KindSettings> = { concurrency, rate: rateOption }
const KEY: Checks<KeySettings> = { concurrency, rate: rateOption }

/** What may be set of what. */
export const SETTING_CHECKS = { queue: QUEUE, tenant: TENANT, group: GROUP, kind: KIND, key: KEY } as const

export function queueSettings(given: unknown): SettingsChange<QueueSettings> {
  return checked('configureQueue', given, QUEUE)
}

export function tenantSettings(given: unknown): SettingsChange<TenantSettings> {
  return checked('configureTenant', given, TENANT)
}

export function groupSettings(given: unknown): SettingsChange<GroupSettings> {
  return checked('configureGroup', given, GROUP)
}

export function kindSettings(given: unknown): SettingsChange<KindSettings> {
  return checked('configureKind', given, KIND)
}

export function keySettings(given: unknown): SettingsChange<KeySettings> {
  return checked('configureKey', given, KEY)
}

/** A copy without what is undefined, every other value checked. */
function checked<Settings>(what: string, given: unknown, checks: Checks<Settings>): SettingsChange<Settings> {
  checkKnownOptions(what, given, Object.keys(checks))
  const values = given as Readonly<Record<string, unknown>>
  const entries = Object.entries<Check>(checks)
    .filter(([name]) => values[name] !== undefined)
    .map(([name, check]) => [name, values[name] === null ? null : check(name, values[name])])
  return Object.fromEntries(entries) as SettingsChange<Settings>
}

export function rateOption(name: string, value: unknown): RateLimit {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw expected(name, 'an object with limit, and perhaps perMs and burst', value)
  }
  checkKnownOptions(name, value, ['limit', 'perMs', 'burst'])
  const given = value as { readonly limit?: unknown; readonly perMs?: unknown; readonly burst?: unknown }
  const limit = numberOption(`${name}.limit`, given.limit, RATE_LIMIT)
  const perMs = numberOption(`${name}.perMs`, given.perMs ?? 1_000, RATE_PER_MS)
  const perSecond = (limit * 1_000) / perMs
  if (!(perSecond >= RATE.min && perSecond <= RATE.max)) {
    throw expected(name, `from ${RATE.min} to ${RATE.max} a second`, perSecond)
  }
  if (given.burst === undefined || given.burst === null) return { limit, perMs }
  return { limit, perMs, burst: integerOption(`${name}.burst`, given.burst, BURST) }
}

export function objectiveOption(name: string, value: unknown): Objective {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw expected(name, 'an object with waitMs and share', value)
  }
  checkKnownOptions(name, value, ['waitMs', 'share'])
  const { waitMs, share } = value as { readonly waitMs?: unknown; readonly share?: unknown }
  return {
    waitMs: numberOption(`${name}.waitMs`, waitMs, OBJECTIVE_WAIT_MS),
    share: numberOption(`${name}.share`, share, OBJECTIVE_SHARE),
  }
}
