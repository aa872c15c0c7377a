import type { Sink } from './output.js'

/** One line on a terminal that says what is being done, drawn over and over in place. Elsewhere only `say` writes. */
export class StatusLine {
  readonly #sink: Sink
  #shown = false

  constructor(sink: Sink) {
    this.#sink = sink
  }

  show(text: string): void {
    if (!this.#sink.isTTY) return
    // A longer line would wrap, and the next one would not cover it.
    this.#sink.write(`\r${text.slice(0, (this.#sink.columns || 80) - 1)}\u001b[K`)
    this.#shown = true
  }

  /** A line that stays. */
  say(text: string): void {
    this.clear()
    this.#sink.write(`${text}\n`)
  }

  clear(): void {
    if (this.#shown) this.#sink.write('\r\u001b[K')
    this.#shown = false
  }
}
