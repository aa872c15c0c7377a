import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PayloadError } from '../errors.js'
import { PAYLOAD_BYTES_DEFAULT, PAYLOAD_DEPTH_MAX } from '../limits.js'
import { decodePayload, encodePayload } from './payload.js'

const encode = (value: unknown, limit = PAYLOAD_BYTES_DEFAULT) => encodePayload(value, limit)
const roundTrip = (value: unknown) => decodePayload(encode(value))

/** Equal in value, in kind of container, in the sign of zero and in the order of members. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return Object.is(a, b)
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [aKeys, bKeys] = [Reflect.ownKeys(a), Reflect.ownKeys(b)]
  if (aKeys.length !== bKeys.length) return false
  return aKeys.every((key, at) => bKeys[at] === key && isSame(Reflect.get(a, key), Reflect.get(b, key)))
}

function refusalOf(value: unknown, limit?: number): PayloadError {
  try {
    encode(value, limit)
  } catch (error) {
    expect(error).toBeInstanceOf(PayloadError)
    return error as PayloadError
  }
  throw new Error('the payload was accepted')
}

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level += 1) value = level % 2 ? [value] : { a: value }
  return value
}

const text = fc
  .oneof(
    fc.string({ unit: 'binary' }),
    fc
      .array(fc.constantFrom('\ud800', '\udfff', '"', '\\', '\u2028', 'é', '😀', '\n', 'a'))
      .map((parts) => parts.join('')),
  )
  .filter((value) => !value.includes('\0'))
const name = fc.oneof(text, fc.constantFrom('__proto__', '', 'constructor', 'length', '0', '-1', 'my key', 'toJSON'))
const json = fc
  .letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 6, withCrossShrink: true },
      fc.oneof(
        text,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.constantFrom(-0, 0, null, true, false, 5e-324),
      ),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.array(fc.tuple(name, tie('value')), { maxLength: 5 }).map((members) => Object.fromEntries(members)),
      fc.jsonValue({ stringUnit: 'binary' }),
    ),
  }))
  .value.filter((value) => !JSON.stringify(value).includes('\\u0000'))

describe('what is accepted comes back exactly', () => {
  test('any JSON value with odd names, lone surrogates and negative zeros round-trips (B58)', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(isSame(roundTrip(value), value)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('the text is what JSON.stringify writes, but for negative zero', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(encode(value).replaceAll(/-0(?=[,\]}]|$)/g, '0')).toBe(
          JSON.stringify(value).replaceAll(/-0(?=[,\]}]|$)/g, '0'),
        )
      }),
    )
  })

  test.each([[[]], [[1, 2]], [['a,b', '{}']], ['text'], [''], ['null'], ['123'], [0], [false], [null], [{}], [[[]]]])(
    '%j as a whole payload comes back as it went (B59)',
    (value) => {
      expect(isSame(roundTrip(value), value)).toBe(true)
    },
  )

  test('-0 stays -0, nested and at the top (B58)', () => {
    expect(roundTrip(-0)).toBe(-0)
    expect(roundTrip({ a: [-0] })).toStrictEqual({ a: [-0] })
  })

  test('an own member named __proto__ is data and changes no prototype (B58)', () => {
    const decoded = roundTrip(JSON.parse('{"__proto__": {"admin": true}}')) as Record<string, unknown>
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype)
    expect(Object.hasOwn(decoded, '__proto__')).toBe(true)
    expect('admin' in decoded).toBe(false)
  })

  test('members come back in the order in which they were written, unlike in jsonb', () => {
    expect(encode({ bb: 1, a: 2, ccc: 3 })).toBe('{"bb":1,"a":2,"ccc":3}')
  })

  test('a shared object that is no cycle is written twice', () => {
    const shared = { a: 1 }
    expect(encode({ x: shared, y: [shared] })).toBe('{"x":{"a":1},"y":[{"a":1}]}')
  })

  test('objects without a prototype, frozen ones, and those of another realm are plain', () => {
    expect(encode(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}')
    expect(encode(Object.freeze({ a: 1 }))).toBe('{"a":1}')
    expect(encode(runInNewContext('({ a: [1, { b: 2 }] })'))).toBe('{"a":[1,{"b":2}]}')
  })

  test('a getter is read once, so that it cannot show two values', () => {
    let reads = 0
    const value = {
      get a() {
        reads += 1
        return reads === 1 ? 1 : Number.NaN
      },
    }
    expect(encode(value)).toBe('{"a":1}')
  })

  test('the deepest allowed nesting is accepted', () => {
    expect(isSame(roundTrip(nested(PAYLOAD_DEPTH_MAX)), nested(PAYLOAD_DEPTH_MAX))).toBe(true)
  })
})

class Point {
  x = 1
}
function argumentsOf(..._: unknown[]): unknown {
  // biome-ignore lint/complexity/noArguments: it looks like a plain object and is none
  return arguments
}
class List extends Array<number> {}
const withName = (key: PropertyKey, value: unknown, enumerable = true) =>
  Object.defineProperty({}, key, { value, enumerable })

describe('what would not come back is refused with its path and a remedy', () => {
  test.each<[string, unknown, string, string]>([
    ['undefined', undefined, '$', 'got undefined; leave the member out or pass null'],
    ['an undefined member', { a: { b: undefined } }, '$.a.b', 'got undefined'],
    ['an array hole', Object.assign(Array(3), { 0: 1, 2: 3 }), '$[1]', 'got undefined'],
    ['a BigInt', { id: 2n ** 70n }, '$.id', 'got 1180591620717411303424n; pass String(value)'],
    ['NaN', { a: [{ 'my key': Number.NaN }] }, '$.a[0]["my key"]', 'got NaN; pass null or a finite number'],
    ['Infinity', [Number.POSITIVE_INFINITY], '$[0]', 'got Infinity'],
    ['-Infinity', [Number.NEGATIVE_INFINITY], '$[0]', 'got -Infinity'],
    ['a number literal out of range', JSON.parse('[1e400]'), '$[0]', 'got Infinity'],
    ['a function', { f: () => {} }, '$.f', 'got a function; pass data only'],
    ['a symbol', { s: Symbol('s') }, '$.s', 'got a symbol'],
    ['a symbol name', withName(Symbol('s'), 1), '$[Symbol(s)]', 'is a symbol, which JSON cannot name'],
    ['a member that is not enumerable', withName('hidden', 1, false), '$.hidden', 'is a member that JSON leaves out'],
    ['a name on an array', Object.assign([1], { extra: 1 }), '$.extra', 'is a member that JSON leaves out'],
    ['a Date', { at: new Date(0) }, '$.at', 'pass date.toISOString()'],
    ['an invalid Date', { at: new Date(Number.NaN) }, '$.at', 'got an invalid Date; pass null'],
    ['a Date of another realm', { at: runInNewContext('new Date(0)') }, '$.at', 'pass date.toISOString()'],
    ['a Map', { m: new Map() }, '$.m', 'got an object of class Map; pass Object.fromEntries(map)'],
    ['a Set', { s: new Set() }, '$.s', 'pass [...set]'],
    ['a Buffer', { b: Buffer.from('x') }, '$.b', "toString('base64')"],
    ['a Float64Array', { b: new Float64Array(1) }, '$.b', 'pass a plain array'],
    ['a RegExp', { r: /x/ }, '$.r', 'pass regexp.source'],
    ['a URL', { u: new URL('https://example.org') }, '$.u', 'pass url.href'],
    ['an Error', { e: new Error('x') }, '$.e', 'pass error.message'],
    ['a Promise', { p: Promise.resolve(1) }, '$.p', 'await it first'],
    ['a boxed number', [Object(1)], '$[0]', 'pass the primitive'],
    ['a boxed string', [Object('x')], '$[0]', 'pass the primitive'],
    ['a class instance', { point: new Point() }, '$.point', 'got an object of class Point; pass a plain object'],
    ['a subclass of Array', [new List()], '$[0]', 'pass a plain array'],
    ['an arguments object', [argumentsOf(1)], '$[0]', 'pass a plain object'],
    ['an own toJSON', { a: { toJSON: () => 1 } }, '$.a.toJSON', 'pass the result of toJSON() instead'],
    ['an inherited toJSON', [Object.create({ toJSON: () => 1 })], '$[0]', 'pass value.toJSON()'],
    ['NUL in a string', { a: 'x\0y' }, '$.a', 'contains the character NUL (\\u0000); remove it'],
    ['NUL in a name', { 'x\0y': 1 }, '$["x\\u0000y"]', 'has a name that contains the character NUL'],
  ])('%s is refused (B58)', (_, value, path, words) => {
    const error = refusalOf(value)
    expect(error).toMatchObject({ code: 'PAYLOAD_INVALID', path })
    expect(error.message).toContain(words)
    expect(error.message).toContain(path)
  })

  test('a cycle is refused with both of its paths (B58)', () => {
    const order = { lines: [{ parent: undefined as unknown }] }
    if (order.lines[0]) order.lines[0].parent = order.lines
    const error = refusalOf({ order })
    expect(error.path).toBe('$.order.lines[0].parent')
    expect(error.message).toContain('is a cycle: it refers back to $.order.lines')
  })

  test.each([[PAYLOAD_DEPTH_MAX + 1], [100_000]])(
    '%i levels of nesting are refused without overflow (B58)',
    (levels) => {
      expect(refusalOf(nested(levels)).message).toContain(`is nested deeper than ${PAYLOAD_DEPTH_MAX} levels`)
    },
  )

  test('a getter that throws is refused with its path and the cause', () => {
    const cause = new Error('lazy loading failed')
    const error = refusalOf({
      user: {
        get name() {
          throw cause
        },
      },
    })
    expect(error).toMatchObject({ path: '$.user.name', code: 'PAYLOAD_INVALID', cause })
  })

  test('a Proxy that throws on every trap, and a revoked one, are refused with their path', () => {
    const thrower = () => {
      throw new Error('trap')
    }
    const hostile = new Proxy({}, { get: thrower, ownKeys: thrower, getPrototypeOf: thrower })
    const revocable = Proxy.revocable({}, {})
    revocable.revoke()
    expect(refusalOf({ a: hostile }).path).toBe('$.a')
    expect(refusalOf({ a: [revocable.proxy] }).path).toBe('$.a[0]')
  })

  test('every value at all is either carried exactly or refused with a PayloadError', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withSparseArray: true,
      withNullPrototype: true,
      withBoxedValues: true,
    })
    fc.assert(
      fc.property(anything, (value) => {
        let encoded: string
        try {
          encoded = encode(value)
        } catch (error) {
          expect(error).toBeInstanceOf(PayloadError)
          return
        }
        expect(isSame(decodePayload(encoded), value)).toBe(true)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('the limit', () => {
  test('counts bytes of UTF-8, and a payload of exactly the limit passes', () => {
    expect(encode('é'.repeat(4), 10)).toBe('"éééé"')
    const error = refusalOf('é'.repeat(4), 9)
    expect(error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', path: '$' })
    expect(error.message).toContain('has 10 bytes as JSON and the limit is 9')
    expect(error.message).toContain('enqueue a reference')
  })

  test('the exact size is told also when the value is many times too large', () => {
    const value = Array.from({ length: 1_000 }, () => 'x'.repeat(1_000))
    expect(refusalOf(value, 100).message).toContain(`has ${JSON.stringify(value).length} bytes`)
  })

  test('a small value that stands for an endless text is refused before memory runs out', () => {
    let value: unknown = 'x'.repeat(1_000)
    for (let level = 0; level < 100; level += 1) value = [value, value]
    expect(refusalOf(value)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
  })

  test('what cannot be carried is reported before the size is', () => {
    expect(refusalOf(['x'.repeat(1_000), Number.NaN], 100)).toMatchObject({ code: 'PAYLOAD_INVALID', path: '$[1]' })
  })
})
