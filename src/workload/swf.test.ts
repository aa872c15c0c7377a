import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseSwfLine, readSwf, type SwfLine } from './swf.js'

const JOB = '    1     1460     -1   3726  128     -1    -1   -1     -1    -1 -1   7   1  -1 -1 -1 -1 -1'

describe('parseSwfLine', () => {
  it('reads submit time, run time and user', () => {
    expect(parseSwfLine(9, JOB)).toEqual({ type: 'job', line: 9, job: { submitS: 1460, runS: 3726, user: 7 } })
  })

  it('reads a line with a carriage return, tabs and decimals', () => {
    const text = '1\t0\t-1\t12.5\t1 3.25 -1 -1 -1 -1 -1 3 1 -1 -1 -1 -1 -1\r'
    expect(parseSwfLine(1, text)).toMatchObject({ type: 'job', job: { runS: 12.5, user: 3 } })
  })

  it('keeps header lines and passes over blank ones', () => {
    expect(parseSwfLine(1, '; Acknowledge: Bill Nitzberg')).toEqual({
      type: 'header',
      line: 1,
      text: 'Acknowledge: Bill Nitzberg',
    })
    expect(parseSwfLine(2, '   \r')).toBeUndefined()
  })

  it.each([
    [JOB.replace(/ -1$/, ''), 'malformed', 'expected 18 fields, got 17'],
    [`${JOB} 4`, 'malformed', 'expected 18 fields, got 19'],
    [JOB.replace('3726', 'soon'), 'malformed', 'expected field 4 to be a number, got "soon"'],
    [JOB.replace('3726', '0x1F'), 'malformed', 'expected field 4 to be a number, got "0x1F"'],
    [JOB.replace('3726', 'NaN'), 'malformed', 'expected field 4 to be a number, got "NaN"'],
    [JOB.replace('3726', '\u001b[31m'), 'malformed', 'expected field 4 to be a number, got "\\u001b[31m"'],
    [JOB.replace('1460', '-1'), 'unusable', 'submit time (field 2) is not known: -1'],
    [JOB.replace('3726', '-1'), 'unusable', 'run time (field 4) is not known: -1'],
    [JOB.replace('3726', '-30'), 'unusable', 'run time (field 4) is not known: -30'],
    [JOB.replace(' 7 ', ' -1 '), 'unusable', 'user (field 12) is not known: -1'],
  ])('says of %j that it is %s: %s', (text, type, reason) => {
    expect(parseSwfLine(3, text)).toEqual({ type, line: 3, reason })
  })
})

describe('readSwf', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tenantry-swf-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const saved = async (name: string, content: string | Buffer) => {
    const path = join(folder, name)
    await writeFile(path, content)
    return path
  }
  const read = async (path: string) => {
    const lines: SwfLine[] = []
    for await (const line of readSwf(path)) lines.push(line)
    return lines
  }

  it('reports malformed lines by number and goes on behind them', async () => {
    const path = await saved('a.swf', `; header\n${JOB}\n\nnonsense\n${JOB.replace('3726', '-1')}\n${JOB}`)
    expect((await read(path)).map(({ line, type }) => [line, type])).toEqual([
      [1, 'header'],
      [2, 'job'],
      [4, 'malformed'],
      [5, 'unusable'],
      [6, 'job'],
    ])
  })

  it('knows gzip by the content, not by the name', async () => {
    const plain = await saved('plain.swf.gz', `${JOB}\n`)
    const zipped = await saved('zipped.swf', gzipSync(`${JOB}\n`))
    expect(await read(plain)).toEqual(await read(zipped))
  })

  it('reads lines that are cut anywhere between two chunks, with characters of several bytes', async () => {
    const text = `; Dank an Jürgen\n${`${JOB}\n`.repeat(5_000)}`
    const lines = await read(await saved('long.swf.gz', gzipSync(text)))
    expect(lines).toHaveLength(5_001)
    expect(lines[0]).toMatchObject({ text: 'Dank an Jürgen' })
    expect(lines.slice(1).every((line) => line.type === 'job')).toBe(true)
  })

  it.each([
    ['an empty file', '', 'the file is empty'],
    ['a header without jobs', '; Version: 2.2\n', 'it holds no jobs'],
    ['a CSV file', 'submit,run,user\n1,2,3\n', 'line 1: expected 18 fields, got 1'],
    ['a picture', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10, 0x4a, 0x46]), 'it holds binary data'],
    ['a zipped picture', gzipSync(Buffer.from([0xff, 0xd8, 0x00])), 'it holds binary data'],
    ['a file of one endless line', 'x'.repeat(1_000_000), 'line 1: expected at most 4096 characters'],
  ])('refuses %s as no SWF', async (_, content, reason) => {
    const path = await saved('other', content)
    await expect(read(path)).rejects.toThrow(`${path} is not in Standard Workload Format`)
    await expect(read(path)).rejects.toThrow(reason)
  })

  it('gives up on a large file of another format early', async () => {
    const path = await saved('big.csv', 'a,b,c\n'.repeat(100_000))
    const seen: SwfLine[] = []
    const reading = async () => {
      for await (const line of readSwf(path)) seen.push(line)
    }
    await expect(reading()).rejects.toThrow('expected 18 fields, got 1')
    expect(seen.length).toBeLessThan(20)
  })

  it('names a file that is missing, a directory, or cut off', async () => {
    await expect(read(join(folder, 'absent.swf'))).rejects.toThrow(/^cannot read .*absent\.swf: there is no such file/)
    await expect(read(folder)).rejects.toThrow(/^cannot read .*: it is a directory/)
    const whole = gzipSync(`${JOB}\n`.repeat(1_000))
    const cut = await saved('cut.swf.gz', whole.subarray(0, whole.length - 12))
    await expect(read(cut)).rejects.toThrow(/^cannot read .*cut\.swf\.gz: unexpected end of file/)
  })
})
