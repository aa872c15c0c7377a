import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ConfigurationError } from './errors.js'
import {
  checkKnownOptions,
  choiceOption,
  describeValue,
  expected,
  integerOption,
  nameOption,
  numberOption,
} from './options.js'

describe('option names', () => {
  const known = ['kind', 'payload', 'queue', 'maxAttempts', 'priority', 'retry', 'timeoutMs']

  test.each([
    ['maxAttemps', 'maxAttempts'],
    ['maxattempts', 'maxAttempts'],
    ['max_attempts', 'maxAttempts'],
    ['timeout', 'timeoutMs'],
    ['prioirty', 'priority'],
    ['quue', 'queue'],
  ])('the misspelt option %s is refused with the name that was meant (B13)', (given, meant) => {
    expect(() => checkKnownOptions('defineJob', { [given]: 3 }, known)).toThrow(
      new ConfigurationError(`unknown option "${given}" of defineJob; did you mean ${meant}?`),
    )
  })

  test('an option that resembles none is refused with the list of those that exist (B13)', () => {
    expect(() => checkKnownOptions('defineJob', { concurrency: 5 }, known)).toThrow(
      'unknown option "concurrency" of defineJob; the options are kind, payload, queue',
    )
  })

  test('an own option named __proto__ is refused like any other unknown name', () => {
    expect(() => checkKnownOptions('defineJob', JSON.parse('{"__proto__": 1}'), known)).toThrow('unknown option')
  })

  test('a misspelt option of a hundred thousand characters is refused in a short text', () => {
    const refuse = () => checkKnownOptions('defineJob', { ['m'.repeat(100_000)]: 1 }, known)
    expect(refuse).toThrow(ConfigurationError)
    expect(refuse).not.toThrow(/.{300}/)
  })

  test.each([[null], [undefined], ['queue'], [[]], [3]])('options given as %j are refused', (given) => {
    expect(() => checkKnownOptions('defineJob', given, known)).toThrow(
      /^expected the options of defineJob to be an object/,
    )
  })

  test('known options pass', () => {
    expect(() => checkKnownOptions('defineJob', { kind: 'a', retry: undefined }, known)).not.toThrow()
  })
})

describe('option values', () => {
  test.each([
    [0, '0'],
    [-1, '-1'],
    [1.5, '1.5'],
    ['3', '"3"'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [10_001, '10001'],
    [3n, '3n'],
    [null, 'null'],
    [undefined, 'undefined'],
  ])('an integer option refuses %s and says what it got (B16)', (value, shown) => {
    expect(() => integerOption('maxAttempts', value, { min: 1, max: 10_000 })).toThrow(
      new ConfigurationError(`expected maxAttempts to be an integer from 1 to 10000, got ${shown}`),
    )
  })

  test('an integer option accepts both bounds, and turns -0 into 0', () => {
    expect(integerOption('n', 1, { min: 1, max: 3 })).toBe(1)
    expect(integerOption('n', 3, { min: 1, max: 3 })).toBe(3)
    expect(integerOption('n', -0, { min: 0, max: 3 })).toBe(0)
  })

  test('a number option accepts fractions and refuses NaN', () => {
    expect(numberOption('factor', 1.5, { min: 1, max: 10 })).toBe(1.5)
    expect(() => numberOption('factor', Number.NaN, { min: 1, max: 10 })).toThrow(
      'expected factor to be a number from 1 to 10, got NaN',
    )
  })

  test('a choice outside the set is refused with the set', () => {
    expect(choiceOption('jitter', 'none', ['full', 'none'])).toBe('none')
    expect(() => choiceOption('jitter', 'some', ['full', 'none'])).toThrow(
      `expected jitter to be one of 'full', 'none', got "some"`,
    )
  })

  test('a remedy is appended to the sentence', () => {
    expect(expected('runAt', 'a valid Date', 'now', 'pass new Date()').message).toBe(
      'expected runAt to be a valid Date, got "now"; pass new Date()',
    )
  })
})

describe('names', () => {
  test.each([
    ["x' OR '1'='1"],
    ['x"; DROP TABLE t;--'],
    ['%'],
    ['_'],
    ['\\'],
    ['{a,b}'],
    ['$1'],
    ['a.b[0]'],
    ['__proto__'],
    ['😀'],
    [' '],
    ['x'.repeat(255)],
  ])('%j is a name like any other and comes back unchanged (B94)', (name) => {
    expect(nameOption('tenant', name)).toBe(name)
  })

  test.each([[''], ['x'.repeat(256)], [null], [undefined], [42], [{}]])('%j is refused as a name', (name) => {
    expect(() => nameOption('tenant', name)).toThrow(/^expected tenant to be a string of 1 to 255 bytes in UTF-8, got /)
  })

  test('NUL in a name is refused and shown escaped (B38)', () => {
    expect(() => nameOption('tenant', 'a\0b')).toThrow(
      'expected tenant to be a string without NUL characters, got "a\\u0000b"',
    )
  })

  test('a lone surrogate in a name is refused: UTF-8 cannot carry it', () => {
    expect(() => nameOption('kind', 'a\ud800')).toThrow('lone surrogates')
  })
})

describe('describing a value', () => {
  test('never throws and stays short, whatever the value', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true }), (value) => {
        expect(typeof describeValue(value)).toBe('string')
      }),
    )
  })

  test('a Proxy that throws on every trap is described', () => {
    const thrower = () => {
      throw new Error('trap')
    }
    const hostile = new Proxy({}, { get: thrower, getPrototypeOf: thrower, has: thrower, ownKeys: thrower })
    expect(describeValue(hostile)).toBe('an object that cannot be read')
  })

  test.each([
    [Object.create(null), 'an object'],
    [[1, 2], 'an array of 2'],
    [new Map(), 'an object of class Map'],
    [new Date(0), 'the Date 1970-01-01T00:00:00.000Z'],
    [new Date(Number.NaN), 'an invalid Date'],
    [() => {}, 'a function'],
    [Symbol('s'), 'a symbol'],
    [-0, '-0'],
    [2n ** 70n, '1180591620717411303424n'],
    [-(2n ** 7000n), 'a bigint of more than 40 digits'],
  ])('value %# is described in words', (value, words) => {
    expect(describeValue(value)).toBe(words)
  })
})
