import { InvalidArgumentError, Option } from 'commander'
import { kebabCase } from '../casing.js'
import { ConfigurationError } from '../errors.js'
import { type Check, SETTING_CHECKS } from '../settings/check.js'
import { CHARGES, HISTORY_MODES, type Objective, type RateLimit, STRATEGIES } from '../settings/settings.js'
import { durationMs, inWords } from './options.js'

/** What `none` is read as, since commander takes null for "no value". */
export const NONE = Symbol('none')

/** What settings are set of. */
export type SettingsOf = keyof typeof SETTING_CHECKS

/** How one setting is given on the command line: its value as text, and what the text means to the check of the client. */
interface Spelling {
  readonly placeholder: string
  readonly description: string
  readonly read: (text: string) => unknown
}

const COUNT: Pick<Spelling, 'placeholder' | 'read'> = { placeholder: 'n', read: numberOrText }
const RATE: Pick<Spelling, 'placeholder' | 'read'> = { placeholder: 'rate', read: rateOf }

const SPELLINGS: Readonly<Record<string, Spelling>> = {
  strategy: words(STRATEGIES, 'whose job is next'),
  history: words(HISTORY_MODES, 'what is kept of finished jobs'),
  charge: words(CHARGES, 'what a turn costs: its jobs, or the time for which they run'),
  weight: { ...COUNT, description: 'relative share, 0.001 to 1000' },
  group: { placeholder: 'group', read: (text) => text, description: 'the group whose share it has a part of' },
  concurrency: { ...COUNT, description: 'jobs that may run at once, 0 to 1000000' },
  rate: { ...RATE, description: 'jobs that may start, as in 10/s, 100/m or "10/s burst 50"' },
  quota: { ...COUNT, description: 'jobs that may wait, 0 to 1000000000; enqueue refuses more' },
  tenantConcurrency: { ...COUNT, description: 'concurrency of each tenant that has none of its own' },
  tenantRate: { ...RATE, description: 'rate of each tenant that has none of its own' },
  tenantQuota: { ...COUNT, description: 'quota of each tenant that has none of its own' },
  keyConcurrency: { ...COUNT, description: 'jobs of each key that may run at once, where it has no limit of its own' },
  keyRate: { ...RATE, description: 'rate of each key that has none of its own' },
  objective: {
    placeholder: 'share/wait',
    read: objectiveOf,
    description: 'jobs that are to start within a time, as in 95%/2s; reported, not enforced',
  },
}

/** Options for all that may be set; each reads `none` as "back to the default". */
export function settingOptions(of: SettingsOf): readonly Option[] {
  return Object.entries<Check>(SETTING_CHECKS[of]).map(([name, check]) => {
    const spelling = SPELLINGS[name]
    if (!spelling) throw new Error(`broken invariant: no way to spell the setting ${name}`)
    const { placeholder, description, read } = spelling
    return new Option(`--${kebabCase(name)} <${placeholder}>`, description).argParser((text: string) =>
      text === 'none' && name !== 'history' ? NONE : checked(check, name, read(text)),
    )
  })
}

export function namesOf(of: SettingsOf): readonly string[] {
  return Object.keys(SETTING_CHECKS[of])
}

/** The same sentence as from the client, for a person who mistyped. */
function checked(check: Check, name: string, value: unknown): unknown {
  try {
    return check(name, value)
  } catch (error) {
    if (error instanceof ConfigurationError) throw new InvalidArgumentError(error.message)
    throw error
  }
}

function words(choices: readonly string[], description: string): Spelling {
  return { placeholder: 'word', read: (text) => text, description: `${description}: ${choices.join(', ')}` }
}

/** What is no number is left to the check, which repeats it. */
function numberOrText(text: string): number | string {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : text
}

function rateOf(text: string): RateLimit {
  const [, limit, every = '', burst] = /^([^\s/]+)\/(\S+?)(?: burst (\S+))?$/.exec(text.trim()) ?? []
  const perMs = durationMs(/^\d/.test(every) ? every : `1${every}`)
  if (limit === undefined || perMs === undefined) {
    throw new InvalidArgumentError('Expected a rate such as 10/s, 100/m, 5/10s or "10/s burst 50", or none.')
  }
  const given = { limit: numberOrText(limit), perMs, ...(burst !== undefined && { burst: numberOrText(burst) }) }
  return given as RateLimit
}

function objectiveOf(text: string): Objective {
  const [, share = '', percent, wait = ''] = /^([\d.]+)(%?)\/(\S+)$/.exec(text.trim()) ?? []
  const waitMs = durationMs(wait)
  if (share === '' || waitMs === undefined) {
    throw new InvalidArgumentError('Expected an objective such as 95%/2s or 0.95/2s, or none.')
  }
  // 99.9 / 100 is 0.9990000000000001.
  return { waitMs, share: percent ? Number((Number(share) / 100).toFixed(8)) : Number(share) }
}

/** A setting as it would be given. */
export function spelled(name: string, value: unknown): string {
  if (value === null || value === undefined) return name === 'pausedAt' ? 'no' : 'none'
  if (value instanceof Date) return `since ${value.toISOString()}`
  if (name.toLowerCase().endsWith('rate')) {
    const { limit, perMs = 1_000, burst } = value as RateLimit
    return `${limit}/${inWords(perMs).replace(/^1(?=[a-z])/, '')}${burst === undefined ? '' : ` burst ${burst}`}`
  }
  if (name === 'objective') {
    const { waitMs, share } = value as Objective
    return `${Number((share * 100).toFixed(6))}%/${inWords(waitMs)}`
  }
  return String(value)
}
