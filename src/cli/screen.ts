import type { Sink } from './output.js'

/** Text that is drawn over and over in place, cut to the window, on a terminal. */
export class Screen {
  readonly #sink: Sink
  #isOpen = false

  constructor(sink: Sink) {
    this.#sink = sink
  }

  /** Lines that the window has. */
  get rows(): number {
    return this.#sink.rows || 24
  }

  draw(text: string): void {
    // The other screen of the terminal, so that what stood there before comes back at the end.
    if (!this.#isOpen) this.#sink.write('\u001b[?1049h\u001b[?25l')
    this.#isOpen = true
    const lines = text.split('\n').slice(0, this.rows - 1)
    this.#sink.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`)
  }

  close(): void {
    if (this.#isOpen) this.#sink.write('\u001b[?25h\u001b[?1049l')
    this.#isOpen = false
  }
}
