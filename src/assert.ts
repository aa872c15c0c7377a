/** Throws when an internal invariant does not hold: a bug in Tenantry, never a mistake of its user. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${message}; please report this as a bug in tenantry`)
}

/** Closes a switch over a union: adding a member without handling it no longer compiles. */
export function unreachable(value: never): never {
  throw new Error(`broken invariant: unexpected value ${String(value)}; please report this as a bug in tenantry`)
}
