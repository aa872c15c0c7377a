import { ConfigurationError } from '../errors.js'
import { checkKnownOptions, nameOption } from '../options.js'

/** Which part of a queue can be paused: all of it, one tenant, or one kind. */
export type Scope =
  | {
      /** 1 to 255 bytes. */
      readonly tenant?: string
      readonly kind?: never
    }
  | {
      /** 1 to 255 bytes. */
      readonly kind?: string
      readonly tenant?: never
    }

/** Which jobs of a queue: those of one tenant, of one kind, of both, or all. */
export interface JobFilter {
  /** 1 to 255 bytes. Default: all tenants. */
  readonly tenant?: string
  /** 1 to 255 bytes. Default: all kinds. */
  readonly kind?: string
}

export function scopeOption(what: string, given: unknown): Scope {
  checkKnownOptions(what, given, ['tenant', 'kind'])
  const { tenant, kind } = filterOption(given)
  if (tenant !== undefined && kind !== undefined) {
    throw new ConfigurationError(`${what} takes a tenant or a kind, got both; name the one or the other`)
  }
  if (tenant !== undefined) return { tenant }
  return kind === undefined ? {} : { kind }
}

/** Of options that may have others too. */
export function filterOption({ tenant, kind }: { readonly tenant?: unknown; readonly kind?: unknown }): JobFilter {
  return {
    ...(tenant !== undefined && { tenant: nameOption('tenant', tenant) }),
    ...(kind !== undefined && { kind: nameOption('kind', kind) }),
  }
}
