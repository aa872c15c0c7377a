import type { Examined } from './check.js'

const NAMES = { check: 'schema', title: 'The schema is that of this version.' }

/** `applied` and `pending` as `migrationStatus` tells them. */
export function examineSchema(
  applied: readonly unknown[],
  pending: readonly { readonly version: number; readonly name: string }[],
): Examined {
  if (pending.length === 0) return { ...NAMES, verdict: 'ok', findings: [], remedies: [] }
  const missing = pending.map(({ version, name }) => `${version} (${name})`).join(', ')
  return {
    ...NAMES,
    verdict: 'wrong',
    findings: [applied.length === 0 ? 'The schema was never migrated.' : `Migrations are missing: ${missing}.`],
    remedies: [{ sentence: 'Migrate.', command: 'npx tenantry migrate', call: 'await tenantry.migrate()' }],
  }
}
