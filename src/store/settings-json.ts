import { camelCase, snakeCase } from '../casing.js'

/** Settings travel as JSON: in the schema under names with underscores, in TypeScript under camelCase. */

/** `{tenantRate: {perMs: 1}}` as `{"tenant_rate": {"per_ms": 1}}`. */
export function settingsJson(settings: object): string {
  return JSON.stringify(renamed(settings, snakeCase))
}

/** The way back, of what the schema has answered: the settings, without the names of what they are the settings of. */
export function settingsOf<Settings>(json: string, named: readonly string[]): Settings {
  const answer = Object.entries(JSON.parse(json) as object).filter(([name]) => !named.includes(name))
  const settings = renamed(Object.fromEntries(answer), camelCase) as { readonly pausedAt?: unknown }
  const { pausedAt } = settings
  return { ...settings, ...(typeof pausedAt === 'string' && { pausedAt: new Date(pausedAt) }) } as Settings
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [rename(name), renamed(member, rename)]))
}
