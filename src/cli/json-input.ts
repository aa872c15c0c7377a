import { readFile } from 'node:fs/promises'
import { describeFileError } from '../file-errors.js'
import type { Edge } from './edge.js'
import { CommandError, EXIT } from './exit-codes.js'

/** `--payload`: JSON text, `@file`, or `-` for stdin. */
export async function readJson(edge: Edge, option: string, value: string): Promise<unknown> {
  const text = await textOf(edge, option, value)
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    // Not every message of JSON.parse says where.
    const before = text.slice(0, errorOffset(text)).split('\n')
    const place = `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
    throw new CommandError(EXIT.usage, `expected ${option} to be JSON, but at ${place} it is not: ${String(error)}`)
  }
}

async function textOf(edge: Edge, option: string, value: string): Promise<string> {
  if (value === '-') {
    const chunks: Buffer[] = []
    for await (const chunk of edge.stdin) chunks.push(Buffer.from(chunk))
    return Buffer.concat(chunks).toString()
  }
  if (!value.startsWith('@')) return value
  try {
    return await readFile(value.slice(1), 'utf8')
  } catch (error) {
    throw new CommandError(EXIT.usage, `cannot read the file of ${option}: ${describeFileError(error)}`)
  }
}

const SPACE = /[ \t\n\r]*/y
// From the space on, without the quote and the backslash: control characters must be escaped.
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y

/** Where text stops being JSON. */
export function errorOffset(text: string): number {
  let at = 0
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    if (!pattern.test(text)) return false
    at = pattern.lastIndex
    return true
  }
  const skipCharacter = (characters: string): string => {
    const character = text.charAt(at)
    if (character === '' || !characters.includes(character)) return ''
    at += 1
    skip(SPACE)
    return character
  }
  const skipKey = () => skip(STRING) && skip(SPACE) && skipCharacter(':') !== ''
  // The brackets that are open, outermost first.
  const open: string[] = []
  skip(SPACE)
  for (;;) {
    const opening = skipCharacter('[{')
    if (opening !== '') {
      if (skipCharacter(opening === '[' ? ']' : '}') === '') {
        open.push(opening)
        if (opening === '{' && !skipKey()) return at
        continue
      }
    } else if (!skip(STRING) && !skip(SCALAR)) return at
    skip(SPACE)
    while (open.length > 0 && skipCharacter(open.at(-1) === '[' ? ']' : '}') !== '') open.pop()
    if (open.length === 0 || skipCharacter(',') === '') return at
    if (open.at(-1) === '{' && !skipKey()) return at
  }
}
