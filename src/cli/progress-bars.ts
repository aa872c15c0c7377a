import type { Colors, Sink } from './output.js'

export interface Bar {
  readonly label: string
  readonly total: number
}

const WIDTH = 40

/** A heading and a bar for each label, drawn over and over in place. Draws nothing at all unless on a terminal. */
export class ProgressBars {
  readonly #sink: Sink
  readonly #colors: Colors
  readonly #heading: string
  readonly #bars: readonly Bar[]
  #drawn = false

  constructor(sink: Sink, colors: Colors, content: { readonly heading: string; readonly bars: readonly Bar[] }) {
    this.#sink = sink
    this.#colors = colors
    this.#heading = content.heading
    this.#bars = content.bars
  }

  /** `counts` in the order of the bars. */
  draw(counts: readonly number[]): void {
    if (!this.#sink.isTTY) return
    // Back to the heading; every line is then erased to its end, so that shorter text leaves no rest behind.
    const back = this.#drawn ? `\u001b[${this.#bars.length + 1}A` : ''
    const lines = [
      this.#colors.bold(this.#heading),
      ...this.#bars.map((bar, index) => this.#line(bar, counts[index] ?? 0)),
    ]
    this.#sink.write(back + lines.map((line) => `\r${line}\u001b[K\n`).join(''))
    this.#drawn = true
  }

  #line({ label, total }: Bar, count: number): string {
    const room = Math.min(WIDTH, Math.max(0, (this.#sink.columns || 80) - 40))
    const full = total === 0 ? room : Math.floor((room * count) / total)
    const bar = this.#colors.green('█'.repeat(full)) + this.#colors.dim('░'.repeat(room - full))
    return `  ${label.padEnd(14)} ${bar} ${count.toLocaleString('en-US').padStart(9)} / ${total.toLocaleString('en-US')}`
  }
}
