import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ERROR_NAME_MAX, ERROR_TEXT_MAX } from '../limits.js'
import { describeFailure, plainText } from './failure.js'

const thrower = () => {
  throw new Error('hostile')
}
const HOSTILE_TRAPS = {
  get: thrower,
  has: thrower,
  ownKeys: thrower,
  getPrototypeOf: thrower,
  getOwnPropertyDescriptor: thrower,
} as const

function circular(): object {
  const response: Record<string, unknown> = { status: 500 }
  return Object.assign(response, { request: { response } })
}

/** An Error whose member throws when it is read. */
const withHostile = (member: string) => Object.defineProperty(new Error('x'), member, { get: thrower })

const withNul = Object.assign(new Error('bad \0 byte'), { name: 'Na\0me', stack: 'at \0', cause: 'ca\0use' })

describe('any thrown value is described', () => {
  test.each<[string, unknown, { name: string; message: string }]>([
    ['an Error', new RangeError('too far'), { name: 'RangeError', message: 'too far' }],
    ['a string', 'plain', { name: 'NonError', message: 'plain' }],
    ['undefined', undefined, { name: 'NonError', message: 'undefined was thrown, which is no Error' }],
    ['null', null, { name: 'NonError', message: 'null was thrown, which is no Error' }],
    ['42n', 42n, { name: 'NonError', message: '42n was thrown, which is no Error' }],
    [
      'a BigInt of many digits',
      7n ** 99_999n,
      { name: 'NonError', message: 'a very long BigInt was thrown, which is no Error' },
    ],
    ['a symbol', Symbol('s'), { name: 'NonError', message: 'Symbol(s) was thrown, which is no Error' }],
    ['a function', thrower, { name: 'NonError', message: '[Function: thrower] was thrown, which is no Error' }],
    ['a plain object', { code: 7 }, { name: 'NonError', message: '{ code: 7 }' }],
    ['an object with a message', { message: 'm', name: 'N' }, { name: 'N', message: 'm' }],
    ['an Error of another realm', runInNewContext('new TypeError("t")'), { name: 'TypeError', message: 't' }],
    ['a frozen Error', Object.freeze(new Error('frozen')), { name: 'Error', message: 'frozen' }],
    ['an Error whose message throws', withHostile('message'), { name: 'Error', message: '' }],
    ['an Error whose name throws', withHostile('name'), { name: 'Error', message: 'x' }],
    ['an Error whose stack throws', withHostile('stack'), { name: 'Error', message: 'x' }],
    ['an Error whose cause throws', withHostile('cause'), { name: 'Error', message: 'x' }],
    [
      'an Error with an object as message',
      Object.assign(new Error(), { message: { a: 1 } }),
      { name: 'Error', message: '{ a: 1 }' },
    ],
    [
      'an Error with a code only',
      Object.assign(new Error(''), { code: 'ECONNREFUSED' }),
      { name: 'Error', message: 'ECONNREFUSED' },
    ],
    [
      'an object with a throwing toJSON',
      { toJSON: thrower },
      { name: 'NonError', message: '{ toJSON: [Function: thrower] }' },
    ],
    [
      'a Proxy that throws on every trap',
      new Proxy({ a: 1 }, HOSTILE_TRAPS),
      { name: 'NonError', message: '{ a: 1 }' },
    ],
    [
      'a Proxy of an Error that throws',
      new Proxy(new Error('inner'), HOSTILE_TRAPS),
      { name: 'NonError', message: expect.stringContaining('inner') as never },
    ],
  ])('%s (B39)', (_, thrown, described) => {
    expect(describeFailure(thrown)).toMatchObject(described)
  })

  test('a circular object, bare or on an Error, is described (B39)', () => {
    expect(describeFailure(circular()).message).toContain('[Circular *1]')
    expect(describeFailure(Object.assign(new Error('http'), circular()))).toMatchObject({ message: 'http' })
    const loop = new Error('loop')
    loop.cause = loop
    expect(describeFailure(loop).stack?.match(/caused by Error: loop/g)).toHaveLength(5)
  })

  test('no code of the value runs while it is inspected', () => {
    const ran: string[] = []
    describeFailure({
      get member() {
        return ran.push('getter')
      },
      toJSON: () => ran.push('toJSON'),
      toString: () => ran.push('toString'),
      [Symbol.for('nodejs.util.inspect.custom')]: () => ran.push('inspect'),
    })
    expect(ran).toEqual([])
  })

  test('an AggregateError of 1,000 tells how many there were and shows the first (B39)', () => {
    const errors = Array.from({ length: 1_000 }, (_, at) => new Error(`failed ${at}`))
    const { message } = describeFailure(new AggregateError(errors, 'all failed'))
    expect(message).toBe('all failed [1000 errors: Error: failed 0; Error: failed 1; Error: failed 2; …]')
  })

  test('the stack of an Error ends with its causes', () => {
    const { stack } = describeFailure(new Error('outer', { cause: new TypeError('inner', { cause: 'root' }) }))
    expect(stack).toMatch(/^Error: outer\n {4}at [\s\S]*\ncaused by TypeError: inner\ncaused by root$/)
  })

  test('nothing that fast-check can think of makes it throw (B39)', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withTypedArray: true,
    })
    fc.assert(
      fc.property(anything, fc.boolean(), (value, asMember) => {
        const failure = describeFailure(
          asMember
            ? Object.assign(new Error(), { message: value, name: value, stack: value, cause: value, errors: value })
            : value,
        )
        for (const text of Object.values(failure)) expect(text).toBe(plainText(text, ERROR_TEXT_MAX))
      }),
    )
  })
})

describe('the text of a failure', () => {
  test('has NUL replaced in every member (B38)', () => {
    expect(describeFailure(withNul)).toEqual({
      name: 'Na\uFFFDme',
      message: 'bad \uFFFD byte',
      stack: 'at \uFFFD\ncaused by ca\uFFFDuse',
    })
    expect(describeFailure('a\0b').message).toBe('a\uFFFDb')
  })

  test('has lone surrogates replaced and pairs kept (B38)', () => {
    expect(describeFailure(new Error('\ud800 😀 \udfff')).message).toBe('\uFFFD 😀 \uFFFD')
  })

  test('is cut when a message has 50 MB, and the stack still shows where it happened (B39)', () => {
    const failure = describeFailure(new Error('x'.repeat(50_000_000)))
    expect(failure.message).toHaveLength(ERROR_TEXT_MAX)
    expect(failure.message).toMatch(/x… \[50000000 characters\]$/)
    expect(failure.stack?.length).toBeLessThanOrEqual(ERROR_TEXT_MAX)
    expect(failure.stack).toMatch(/^Error: x+… \[50000000 characters\]\n {4}at /)
  })

  test('keeps the causes when the stack itself is too long', () => {
    const error = Object.assign(new Error('short', { cause: 'root' }), { stack: 'z'.repeat(100_000) })
    const { stack } = describeFailure(error)
    expect(stack).toHaveLength(ERROR_TEXT_MAX)
    expect(stack).toMatch(/^z+… \[100000 characters\]\ncaused by root$/)
  })

  test('stays within its bounds however long the parts are', () => {
    const long = 'y'.repeat(100_000)
    const cause = Object.assign(new Error(long), { name: long, cause: Object.assign(new Error(long), { name: long }) })
    const inner = Array.from({ length: 10 }, () => Object.assign(new Error(long), { name: long }))
    const failure = describeFailure(
      Object.assign(new AggregateError(inner, long, { cause }), { name: long, stack: long }),
    )
    expect(failure.name).toHaveLength(ERROR_NAME_MAX)
    expect(failure.message.length).toBeLessThanOrEqual(ERROR_TEXT_MAX)
    expect(failure.message).toContain('[10 errors: ')
    expect(failure.stack?.length).toBeLessThanOrEqual(ERROR_TEXT_MAX)
    expect(failure.stack).toContain('\ncaused by y')
  })
})
