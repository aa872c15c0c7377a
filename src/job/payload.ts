import { PayloadError } from '../errors.js'
import { PAYLOAD_DEPTH_MAX } from '../limits.js'
import { describeValue } from '../options.js'
import { formatPath } from './path.js'
import { jsonRemedy, tagOf } from './payload-remedy.js'

/**
 * Payloads are stored as JSON text, and a handler must see exactly what was enqueued. `JSON.stringify` does not give
 * that: it turns NaN into null, a Map into {}, a Date into a string and -0 into 0, drops undefined members, and
 * overflows the stack on deep values. So the text is written here, in one pass that reads each member once (a getter
 * or a Proxy cannot show one value to a check and another to the writer), and whatever would not come back is refused
 * with the path to it.
 */
export function encodePayload(value: unknown, limitBytes: number): string {
  const writer = new PayloadWriter(limitBytes)
  return writer.write(value)
}

/** The inverse of `encodePayload`. A member named `__proto__` becomes an own member and changes no prototype. */
export function decodePayload(text: string): unknown {
  return JSON.parse(text)
}

/**
 * A value over the limit is measured on, without keeping its text, so that the error can say how large it is; up to
 * this. A few nested arrays that share their members can stand for more text than any machine holds.
 */
const MEASURED_BYTES_MAX = 16 * 1024 * 1024

/** Writes one payload. Knows at every moment where it is, so that an error can name the path. */
class PayloadWriter {
  readonly #limitBytes: number
  readonly #path: (string | number)[] = []
  /** The objects that contain the current value; the one at index i stands at the first i segments of the path. */
  readonly #ancestors: object[] = []
  #text = ''
  /** Bytes of text already thrown away because the limit was passed. */
  #droppedBytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  write(value: unknown): string {
    try {
      this.#value(value)
    } catch (error) {
      if (error instanceof PayloadError) throw error
      throw this.#refusal('could not be read: it threw', 'pass plain data', { cause: error })
    }
    const bytes = this.#droppedBytes + Buffer.byteLength(this.#text)
    if (bytes > this.#limitBytes) throw this.#tooLarge(`${bytes}`)
    return this.#text
  }

  #value(value: unknown): void {
    if (typeof value === 'string') this.#string(value)
    else if (typeof value === 'number') this.#number(value)
    else if (typeof value === 'boolean' || value === null) this.#append(String(value))
    else if (typeof value === 'object') this.#container(value)
    else throw this.#notJson(value)
  }

  #string(value: string): void {
    if (value.includes('\0')) {
      throw this.#refusal('contains the character NUL (\\u0000)', 'remove it, or encode binary data as base64')
    }
    this.#append(JSON.stringify(value))
  }

  #number(value: number): void {
    if (!Number.isFinite(value)) throw this.#notJson(value)
    this.#append(Object.is(value, -0) ? '-0' : String(value))
  }

  #container(value: object): void {
    const first = this.#ancestors.indexOf(value)
    if (first !== -1) {
      const target = formatPath(this.#path.slice(0, first))
      throw this.#refusal(`is a cycle: it refers back to ${target}`, 'pass an identifier instead of the object')
    }
    if (this.#ancestors.length >= PAYLOAD_DEPTH_MAX) {
      throw this.#refusal(`is nested deeper than ${PAYLOAD_DEPTH_MAX} levels`, 'flatten it')
    }
    this.#ancestors.push(value)
    if (Array.isArray(value)) this.#array(value)
    else this.#object(value)
    this.#ancestors.pop()
  }

  #array(value: readonly unknown[]): void {
    if (!isPlainArray(value)) throw this.#notJson(value)
    this.#append('[')
    const { length } = value
    for (let index = 0; index < length; index += 1) {
      if (index > 0) this.#append(',')
      this.#path.push(index)
      this.#value(value[index])
      this.#path.pop()
    }
    this.#append(']')
    // All indexes are there, or a hole had been refused as undefined; so anything more is a name.
    const names = Reflect.ownKeys(value)
    if (names.length > length + 1) this.#refuseMember(names.find((name) => name !== 'length' && !isIndex(name, length)))
  }

  #object(value: object): void {
    if (!isPlainObject(value)) throw this.#notJson(value)
    const names = Object.keys(value)
    const all = Reflect.ownKeys(value)
    if (all.length !== names.length)
      this.#refuseMember(all.find((name) => typeof name === 'symbol' || !names.includes(name)))
    this.#append('{')
    let separator = ''
    for (const name of names) {
      this.#path.push(name)
      if (name.includes('\0')) {
        throw this.#refusal('has a name that contains the character NUL (\\u0000)', 'rename the member')
      }
      this.#append(`${separator}${JSON.stringify(name)}:`)
      this.#value(Reflect.get(value, name))
      this.#path.pop()
      separator = ','
    }
    this.#append('}')
  }

  #refuseMember(name: PropertyKey | undefined): never {
    const path = formatPath(name === undefined ? this.#path : [...this.#path, name])
    const why = typeof name === 'symbol' ? 'is a symbol, which JSON cannot name' : 'is a member that JSON leaves out'
    throw new PayloadError('PAYLOAD_INVALID', path, `payload refused: ${path} ${why}; remove it or rename the member`)
  }

  #append(text: string): void {
    this.#text += text
    if (this.#text.length <= this.#limitBytes) return
    // Each character is at least one byte: too large already. From here on only the size is of interest.
    this.#droppedBytes += Buffer.byteLength(this.#text)
    this.#text = ''
    if (this.#droppedBytes > Math.max(MEASURED_BYTES_MAX, this.#limitBytes)) {
      throw this.#tooLarge(`at least ${this.#droppedBytes}`)
    }
  }

  #tooLarge(size: string): PayloadError {
    return new PayloadError(
      'PAYLOAD_TOO_LARGE',
      '$',
      `payload refused: it has ${size} bytes as JSON and the limit is ${this.#limitBytes}; store the data in a table ` +
        'or an object store and enqueue a reference to it, or raise payloadBytesMax',
    )
  }

  #notJson(value: unknown): PayloadError {
    const path = formatPath(this.#path)
    const remedy = this.#path.at(-1) === 'toJSON' ? 'pass the result of toJSON() instead' : jsonRemedy(value)
    return new PayloadError(
      'PAYLOAD_INVALID',
      path,
      `payload refused: expected ${path} to be a JSON value, got ${describeValue(value)}; ${remedy}`,
    )
  }

  #refusal(what: string, remedy: string, options?: ErrorOptions): PayloadError {
    const path = formatPath(this.#path)
    return new PayloadError('PAYLOAD_INVALID', path, `payload refused: ${path} ${what}; ${remedy}`, options)
  }
}

function isIndex(name: PropertyKey, length: number): boolean {
  return typeof name === 'string' && String(Number(name)) === name && Number(name) >= 0 && Number(name) < length
}

/** `Object.prototype` of this or another realm: test runners and `node:vm` run code in realms of their own. */
function isRootPrototype(prototype: object | null): boolean {
  return prototype !== null && Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

function isPlainObject(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  return prototype === null || (isRootPrototype(prototype) && tagOf(value) === 'Object')
}

/** False for subclasses of Array, whose class would be lost. */
function isPlainArray(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  return prototype !== null && isRootPrototype(Object.getPrototypeOf(prototype))
}
