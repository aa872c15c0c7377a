import { ConfigurationError } from '../errors.js'
import { checkKnownOptions, nameOption } from '../options.js'
import type { Scope } from './settings.js'

/** One tenant, one kind, or all of a queue. */
export function scopeOption(what: string, given: unknown): Scope {
  const scope = filterOption(what, given)
  if (scope.tenant !== undefined && scope.kind !== undefined) {
    throw new ConfigurationError(`${what} takes a tenant or a kind, got both; name the one or the other`)
  }
  return scope
}

/** One tenant, one kind, both, or all of a queue. */
export function filterOption(what: string, given: unknown): Scope {
  checkKnownOptions(what, given, ['tenant', 'kind'])
  const { tenant, kind } = given as { readonly tenant?: unknown; readonly kind?: unknown }
  return {
    ...(tenant !== undefined && { tenant: nameOption('tenant', tenant) }),
    ...(kind !== undefined && { kind: nameOption('kind', kind) }),
  }
}
