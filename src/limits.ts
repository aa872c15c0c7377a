/** The hard bounds that several parts share, with their reasons. Those of one part, and the defaults, stand where they are used. */

/** Jobs in one claim. The second article's advice is 20 to 100; past 500 one transaction holds the queue's lock too long. */
export const CLAIM_BATCH_MAX = 500

/** Jobs in one enqueue statement. More are sent in several statements of one transaction. */
export const ENQUEUE_STATEMENT_MAX = 10_000

/** Bytes of payload in one enqueue statement. A text of 512 MiB is more than V8 can hold, and 1 GiB more than PostgreSQL can. */
export const ENQUEUE_STATEMENT_BYTES_MAX = 32 * 1024 * 1024

/** Bytes of one payload as JSON in UTF-8, by default. Larger inputs belong in a table or an object store, by reference. */
export const PAYLOAD_BYTES_DEFAULT = 256 * 1024

/** Levels of nesting in a payload. JSON.stringify itself overflows the stack at a few thousand. */
export const PAYLOAD_DEPTH_MAX = 500

/** Characters kept of an error's message, and of its stack. */
export const ERROR_TEXT_MAX = 4_096

/** Characters kept of an error's name. */
export const ERROR_NAME_MAX = 255

/** Errors kept on a job: the newest ones. A job with 1,000 attempts must not become a megabyte. */
export const ERRORS_KEPT = 20

/** Bytes of a tenant, a queue or a kind. All three stand in one index entry, which PostgreSQL limits to 2,704 bytes. */
export const NAME_BYTES_MAX = 255

/** `priority` is a 16-bit number; the range leaves room and is easy to remember. */
export const PRIORITY_MAX = 1_000

/** Attempts of one job. Fits a 16-bit number. */
export const ATTEMPTS_MAX = 10_000

/** Any delay (back-off, snooze, delay at enqueue): ten years. */
export const DELAY_MS_MAX = 10 * 365 * 24 * 3_600_000

/** Kinds that one worker may handle: every claim sends them all. */
export const KINDS_MAX = 1_000

/** Settled jobs that wait to be written. Above this the worker stops claiming until the database has caught up. */
export const SETTLE_BACKLOG_MAX = 10_000

/** Jobs settled in one statement. */
export const SETTLE_BATCH_MAX = 500

/** Leases reclaimed in one call: enough for a whole worker that was killed, few enough for a short transaction. */
export const RECLAIM_LEASES_MAX = 100

/** Longest a statement of ours waits for a lock, as the second article advises for the worker's role. Also in the SQL. */
export const LOCK_TIMEOUT_MS = 3_000

/** `timeoutMs` of a definition: what setTimeout can wait, 24.8 days. It fires a longer one at once. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1

/** Handlers that run at once in one process. More would need more memory and sockets than one event loop can serve. */
export const CONCURRENCY_MAX = 10_000

/** Partitions of the history are made this far ahead: a fortnight without any worker does no harm. */
export const HISTORY_DAYS_AHEAD = 14
