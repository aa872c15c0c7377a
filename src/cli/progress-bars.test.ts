import { expect, it } from 'vitest'
import { colorsFor } from './output.js'
import { ProgressBars } from './progress-bars.js'

const content = {
  heading: 'FIFO',
  bars: [
    { label: 'noisy', total: 1_000 },
    { label: 'none', total: 0 },
  ],
}

function barsOn(sink: { readonly isTTY?: boolean; readonly columns?: number }) {
  const written: string[] = []
  const output = { ...sink, write: (text: string) => written.push(text) }
  return { written, bars: new ProgressBars(output, colorsFor(output, {}, false), content) }
}

it('draws in place on a terminal', () => {
  const { written, bars } = barsOn({ isTTY: true, columns: 80 })
  bars.draw([0, 0])
  bars.draw([250, 0])
  expect(written[0]).toContain(`FIFO\u001b[K\n\r  noisy          ${'░'.repeat(40)}         0 / 1,000`)
  expect(written[1]?.startsWith('\u001b[3A\rFIFO')).toBe(true)
  expect(written[1]).toContain(`${'█'.repeat(10)}${'░'.repeat(30)}       250 / 1,000`)
})

it('keeps its lines within a narrow terminal, where a wrapped line could not be drawn over', () => {
  const { written, bars } = barsOn({ isTTY: true, columns: 50 })
  bars.draw([1_000, 0])
  const lines = (written[0] ?? '').split('\n').map((line) => line.replace('\r', '').replace('\u001b[K', ''))
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(50)
})

it('writes nothing at all into a file or a pipe', () => {
  const { written, bars } = barsOn({})
  bars.draw([1, 0])
  expect(written).toEqual([])
})
