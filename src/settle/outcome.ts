/** How a failed attempt is recorded: text only, trimmed, free of NUL. */
export interface Failure {
  readonly name: string
  readonly message: string
  readonly stack?: string
}

/** What one finished attempt means for its job. */
export type Outcome =
  | { readonly type: 'complete' }
  | { readonly type: 'retry'; readonly delayMs: number; readonly failure: Failure }
  | { readonly type: 'snooze'; readonly delayMs: number }
  | { readonly type: 'release' }
  | { readonly type: 'cancel'; readonly reason: string }
  | { readonly type: 'discard'; readonly failure: Failure }

/** An outcome with the fence that it must pass: the lease under which the job was claimed. */
export interface Settlement {
  readonly jobId: string
  readonly leaseId: string
  readonly outcome: Outcome
}
