/** A heading and rows of text, for a terminal or for Markdown. The first columns are words, the others numbers. */
export interface TextTable {
  readonly words: number
  readonly titles: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export function markdownTable({ words, titles, rows }: TextTable): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
  return [line(titles), line(titles.map((_, index) => (index < words ? '---' : '--:'))), ...rows.map(line)].join('')
}

/** A figure with so many decimals, or a dash for one that could not be measured. */
export function formatted(value: number | null | undefined, digits: number): string {
  if (value === null || value === undefined) return '-'
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export function verdict(met: boolean | null): string {
  if (met === null) return '-'
  return met ? 'met' : 'missed'
}
