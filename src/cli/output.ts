import pc from 'picocolors'
import type { Environment } from './connect.js'

/** The part of a stream that is needed here. */
export interface Sink {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

export type Colors = ReturnType<typeof pc.createColors>

/** Colour on a terminal, unless NO_COLOR, TERM=dumb or --no-color; FORCE_COLOR brings it to files and pipes too. */
export function colorsFor(sink: Sink, environment: Environment, wanted = true): Colors {
  const { FORCE_COLOR: force, NO_COLOR: no, TERM: terminal } = environment
  if (!wanted || no) return pc.createColors(false)
  if (force) return pc.createColors(force !== '0' && force !== 'false')
  return pc.createColors(sink.isTTY === true && terminal !== 'dumb')
}

/**
 * Control characters of a name or an error that somebody else wrote must not reach the terminal, where they could
 * clear the screen, retitle the window or hide text; neither must characters that reverse the direction of writing.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

export type Alignment = 'left' | 'right'

export interface Column {
  readonly title: string
  readonly align?: Alignment
}

/** Aligned columns, two blanks apart, no boxes: readable for people, and `awk` can take it apart. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[], colors: Colors): string {
  const cells = rows.map((row) => row.map(printable))
  const widths = columns.map((column, index) =>
    Math.max(column.title.length, ...cells.map((row) => row[index]?.length ?? 0)),
  )
  const padded = (text: string, index: number) => {
    const width = widths[index] ?? 0
    return columns[index]?.align === 'right' ? text.padStart(width) : text.padEnd(width)
  }
  const line = (row: readonly string[]) => row.map(padded).join('  ').trimEnd()
  return [colors.bold(line(columns.map((column) => column.title))), ...cells.map(line)]
    .map((row) => `${row}\n`)
    .join('')
}

/** One JSON document, exactly as it is. */
export function exactJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

/** One JSON document of figures. Measured values get three decimals: more are noise. */
export function json(value: unknown): string {
  const rounded = (_: string, each: unknown) => (typeof each === 'number' ? Math.round(each * 1_000) / 1_000 : each)
  return `${JSON.stringify(value, rounded, 2)}\n`
}

/** `n job`, `n jobs`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}
