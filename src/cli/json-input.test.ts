import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Edge } from './edge.js'
import { errorOffset, readJson } from './json-input.js'

const stdin = async function* () {
  yield '{"from":'
  yield Buffer.from('"stdin"}')
}
const edge = { stdin: stdin() } as unknown as Edge

describe('errorOffset', () => {
  it.each([
    ['', 0],
    ['[1,2', 4],
    ['[1,]', 3],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['{a:1}', 1],
    ['[oops]', 1],
    ['01', 1],
    ['[1] x', 4],
    ['{"a":[{"b":tru}]}', 11],
    ['"a\nb"', 0],
  ])('finds where %j stops being JSON', (text, offset) => {
    expect(() => JSON.parse(text)).toThrow()
    expect(errorOffset(text)).toBe(offset)
  })

  it('reads every JSON text to its end', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(errorOffset(text)).toBe(text.length)
      }),
    )
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, null, 2)
        expect(errorOffset(text)).toBe(text.length)
      }),
    )
  })
})

describe('readJson', () => {
  it('reads an argument and stdin', async () => {
    expect(await readJson(edge, '--payload', '[1,"a",null]')).toEqual([1, 'a', null])
    expect(await readJson(edge, '--payload', '-')).toEqual({ from: 'stdin' })
  })

  it('says where a text is no JSON, and which file is missing', async () => {
    await expect(readJson(edge, '--payload', '{"a":\n oops}')).rejects.toThrow(
      'expected --payload to be JSON, but at line 2, column 2 it is not',
    )
    await expect(readJson(edge, '--payload', '@/no/such/file')).rejects.toThrow(
      'cannot read the file of --payload: there is no such file',
    )
    await expect(readJson(edge, '--payload', '@/')).rejects.toThrow('--payload: it is a directory')
  })
})
