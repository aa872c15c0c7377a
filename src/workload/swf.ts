import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline, type Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createGunzip } from 'node:zlib'
import { describeFileError } from '../file-errors.js'
import { WorkloadError } from './workload.js'

/**
 * The Standard Workload Format: one job a line, 18 numbers separated by blanks, -1 for what is not known. Lines that
 * start with `;` are the header, which names the source and whom to acknowledge.
 * See https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
 */
export type SwfLine =
  | { readonly type: 'header'; readonly line: number; readonly text: string }
  | { readonly type: 'job'; readonly line: number; readonly job: SwfJob }
  /** Eighteen numbers, but one that a replay needs is not known. */
  | { readonly type: 'unusable'; readonly line: number; readonly reason: string }
  | { readonly type: 'malformed'; readonly line: number; readonly reason: string }

export interface SwfJob {
  readonly submitS: number
  readonly runS: number
  readonly user: number
}

const FIELDS = 18
const NUMBER = /^-?\d+(\.\d+)?$/

/** A line of the format is some 120 characters; a file without line ends must not be read into memory whole. */
const LINE_LENGTH_MAX = 4_096

/** So many malformed lines before the first good one, and the file is something else. */
const LEADING_MALFORMED_MAX = 20

/** Reads a plain or gzipped file, told apart by its first bytes, line by line. Throws when it is no SWF at all. */
export async function* readSwf(path: string): AsyncGenerator<SwfLine> {
  let lines = 0
  let wellFormed = 0
  const malformed: { readonly line: number; readonly reason: string }[] = []
  for await (const { line, text } of linesOf(await contentOf(path), path)) {
    const parsed = parseSwfLine(line, text)
    if (!parsed) continue
    lines += 1
    if (parsed.type === 'job' || parsed.type === 'unusable') wellFormed += 1
    if (parsed.type === 'malformed' && wellFormed === 0) {
      malformed.push(parsed)
      if (malformed.length === LEADING_MALFORMED_MAX) throw notSwf(path, complaint(malformed[0]))
    }
    yield parsed
  }
  if (wellFormed === 0) throw notSwf(path, lines === 0 ? 'the file is empty' : complaint(malformed[0]))
}

/** One line; undefined for a blank one. */
export function parseSwfLine(line: number, text: string): SwfLine | undefined {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  if (trimmed.startsWith(';')) return { type: 'header', line, text: trimmed.slice(1).trim() }
  const fields = trimmed.split(/\s+/)
  if (text.length > LINE_LENGTH_MAX) {
    return { type: 'malformed', line, reason: `expected at most ${LINE_LENGTH_MAX} characters` }
  }
  if (fields.length !== FIELDS) {
    return { type: 'malformed', line, reason: `expected ${FIELDS} fields, got ${fields.length}` }
  }
  const strange = fields.findIndex((field) => !NUMBER.test(field))
  if (strange >= 0) {
    const got = JSON.stringify(fields[strange]?.slice(0, 40))
    return { type: 'malformed', line, reason: `expected field ${strange + 1} to be a number, got ${got}` }
  }
  return usable(line, fields.map(Number))
}

function usable(line: number, fields: readonly number[]): SwfLine {
  const [, submitS = -1, , runS = -1] = fields
  const user = fields[11] ?? -1
  if (submitS < 0) return { type: 'unusable', line, reason: `submit time (field 2) is not known: ${submitS}` }
  if (runS < 0) return { type: 'unusable', line, reason: `run time (field 4) is not known: ${runS}` }
  if (user < 0) return { type: 'unusable', line, reason: `user (field 12) is not known: ${user}` }
  return { type: 'job', line, job: { submitS, runS, user } }
}

async function contentOf(path: string): Promise<Readable> {
  try {
    const file = await open(path)
    try {
      const start = await file.read(Buffer.alloc(2), 0, 2, 0)
      const gzipped = start.bytesRead === 2 && start.buffer.readUInt16BE(0) === 0x1f8b
      const raw = createReadStream(path)
      // The callback only keeps a failure from being thrown elsewhere: whoever reads the stream is told of it too.
      return gzipped ? pipeline(raw, createGunzip(), () => {}) : raw
    } finally {
      await file.close()
    }
  } catch (error) {
    throw unreadable(path, error)
  }
}

async function* linesOf(content: Readable, path: string): AsyncGenerator<{ line: number; text: string }> {
  const decoder = new StringDecoder('utf8')
  let line = 1
  let rest = ''
  try {
    for await (const chunk of content) {
      const pieces = (rest + decoder.write(chunk as Buffer)).split('\n')
      rest = (pieces.pop() ?? '').slice(0, LINE_LENGTH_MAX + 1)
      for (const text of pieces) yield { line: line++, text: checked(text, path) }
    }
  } catch (error) {
    throw error instanceof WorkloadError ? error : unreadable(path, error)
  }
  if (rest !== '') yield { line, text: checked(rest, path) }
}

function checked(text: string, path: string): string {
  if (text.includes('\0')) throw new WorkloadError(`${path} is not in Standard Workload Format: it holds binary data`)
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}

function complaint(first: { readonly line: number; readonly reason: string } | undefined): string {
  return first ? `line ${first.line}: ${first.reason}` : 'it holds no jobs'
}

function notSwf(path: string, why: string): WorkloadError {
  return new WorkloadError(
    `${path} is not in Standard Workload Format (one job a line, ${FIELDS} numbers each): ${why}; ` +
      'the logs of the Parallel Workloads Archive are',
  )
}

function unreadable(path: string, error: unknown): WorkloadError {
  return new WorkloadError(`cannot read ${path}: ${describeFileError(error)}`, { cause: error })
}
