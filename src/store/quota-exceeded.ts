import { isQuotaRefusal, serverErrorOf } from '../driver/pg-errors.js'
import { QuotaExceededError } from '../errors.js'

/** What the schema raises when an enqueue would exceed a quota, as an error of ours; undefined for anything else. */
export function quotaExceeded(error: unknown): QuotaExceededError | undefined {
  if (!isQuotaRefusal(error)) return undefined
  const { message, detail } = serverErrorOf(error) as { readonly message: string; readonly detail?: unknown }
  if (typeof detail !== 'string') return undefined
  const refused = JSON.parse(detail) as {
    readonly scope: 'queue' | 'tenant'
    readonly queue: string
    readonly tenant: string | null
    readonly quota: number
    readonly queued: number
    readonly retry_after_ms: number
  }
  const { scope, queue, tenant, quota, queued, retry_after_ms: retryAfterMs } = refused
  const use = { scope, queue, ...(tenant !== null && { tenant }), quota, queued, retryAfterMs }
  return new QuotaExceededError(message, use, { cause: error })
}
