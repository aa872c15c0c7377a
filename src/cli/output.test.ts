import { describe, expect, it } from 'vitest'
import { colorsFor, counted, json, printable, table } from './output.js'

const terminal = { write: () => true, isTTY: true }
const pipe = { write: () => true }
const plain = colorsFor(pipe, {})

describe('colorsFor', () => {
  it.each([
    ['a terminal', terminal, {}, true, true],
    ['a pipe', pipe, {}, true, false],
    ['NO_COLOR', terminal, { NO_COLOR: '1' }, true, false],
    ['an empty NO_COLOR', terminal, { NO_COLOR: '' }, true, true],
    ['--no-color', terminal, { FORCE_COLOR: '1' }, false, false],
    ['FORCE_COLOR on a pipe', pipe, { FORCE_COLOR: '1' }, true, true],
    ['FORCE_COLOR=0 on a terminal', terminal, { FORCE_COLOR: '0' }, true, false],
    ['a dumb terminal', terminal, { TERM: 'dumb' }, true, false],
  ])('decides for %s', (_, sink, environment, wanted, colored) => {
    expect(colorsFor(sink, environment, wanted).red('x') !== 'x').toBe(colored)
  })
})

describe('printable', () => {
  it('lets no control character and no change of writing direction reach the terminal (B93)', () => {
    expect(printable('a\u001b[2Jb\u009bc\u0007d\u202ee\r\n\tf')).toBe(
      'a\\u001b[2Jb\\u009bc\\u0007d\\u202ee\\u000d\\n\\tf',
    )
  })

  it('leaves letters of any script alone', () => {
    expect(printable('Jürgen 租户 🦆 "<b>"')).toBe('Jürgen 租户 🦆 "<b>"')
  })
})

describe('table', () => {
  it('aligns columns and leaves no blanks at the ends of lines', () => {
    const columns = [{ title: 'name' }, { title: 'n', align: 'right' }, { title: 'state' }] as const
    expect(
      table(
        columns,
        [
          ['a', '1', 'x'],
          ['longer', '100', ''],
        ],
        plain,
      ),
    ).toBe(['name      n  state', 'a         1  x', 'longer  100', ''].join('\n'))
  })

  it('prints the names of others harmlessly (B93)', () => {
    expect(table([{ title: 'tenant' }], [['\u001b[31mred']], plain)).toContain('\\u001b[31mred')
  })
})

describe('json', () => {
  it('keeps three decimals of a number and everything of a text', () => {
    expect(JSON.parse(json({ a: 1.23456, b: [2], c: null, id: '9007199254740993' }))).toEqual({
      a: 1.235,
      b: [2],
      c: null,
      id: '9007199254740993',
    })
  })
})

describe('counted', () => {
  it('writes one, none and many', () => {
    expect([counted(1, 'job'), counted(0, 'job'), counted(18_239, 'job')]).toEqual(['1 job', '0 jobs', '18,239 jobs'])
  })
})
