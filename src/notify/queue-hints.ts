/** Hands notifications to those who wait for a queue. */
export class QueueHints {
  readonly #subscribers = new Map<string, Set<() => void>>()
  #listener: { readonly isListening: boolean } | undefined

  /** Whether hints arrive at present. */
  get connected(): boolean {
    return this.#listener?.isListening ?? false
  }

  listenThrough(listener: { readonly isListening: boolean }): void {
    this.#listener = listener
  }

  /** Calls `hint` when the queue may have something to claim; answers with how to end that. */
  subscribe(queue: string, hint: () => void): () => void {
    const hints = this.#subscribers.get(queue) ?? new Set()
    this.#subscribers.set(queue, hints.add(hint))
    return () => hints.delete(hint)
  }

  hint(queue: string): void {
    for (const hint of this.#subscribers.get(queue) ?? []) hint()
  }

  /** After a (re)connect: whatever was sent meanwhile is lost. */
  hintAll(): void {
    for (const hints of this.#subscribers.values()) for (const hint of hints) hint()
  }
}
