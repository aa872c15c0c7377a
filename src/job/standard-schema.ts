import { formatPath } from './path.js'

/**
 * The Standard Schema interface, version 1 (https://standardschema.dev): what zod, valibot and arktype schemas have in
 * common. The types are copied, as the specification invites, so that no schema library is a dependency.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    /** Exists for the type checker only. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** What the schema accepts. */
export type InferInput<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['input']

/** What the schema turns it into. */
export type InferOutput<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['output']

/** Issues that are reported one by one. An array of 100,000 wrong members must not become a text of 100,000 lines. */
const ISSUES_SHOWN_MAX = 20

export type Validation<Output> = { readonly value: Output } | ValidationFailure

export interface ValidationFailure {
  /** One line for each issue, each with its path, as in `$.lines[3].price: expected number, received string`. */
  readonly issues: readonly string[]
  /** Where the first issue is. */
  readonly path: string
}

/** Whether a value can be used as a schema. Some libraries' schemas are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return false
  const standard: unknown = Reflect.get(value, '~standard')
  if (typeof standard !== 'object' || standard === null) return false
  return Reflect.get(standard, 'version') === 1 && typeof Reflect.get(standard, 'validate') === 'function'
}

/** Runs a schema that may answer at once or later. What the schema itself throws is passed on: it is no verdict. */
export async function validate<Output>(
  schema: StandardSchema<unknown, Output>,
  value: unknown,
): Promise<Validation<Output>> {
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return { value: result.value }
  const located = result.issues.slice(0, ISSUES_SHOWN_MAX).map((issue) => ({ path: issuePath(issue), issue }))
  const issues = located.map(({ path, issue }) => `${path}: ${issue.message}`)
  const unshown = result.issues.length - located.length
  if (unshown > 0) issues.push(`… and ${unshown} more`)
  return { issues, path: located[0]?.path ?? '$' }
}

function issuePath(issue: SchemaIssue): string {
  return formatPath((issue.path ?? []).map((segment) => (typeof segment === 'object' ? segment.key : segment)))
}
