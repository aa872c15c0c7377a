/** The built-in class of a value, whatever realm it comes from. */
export function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1)
}

const REMEDIES: Readonly<Record<string, string>> = {
  Undefined: 'leave the member out or pass null',
  Number: 'pass null or a finite number',
  BigInt: 'pass String(value) and read it with BigInt(text)',
  Function: 'pass data only',
  AsyncFunction: 'pass data only',
  Symbol: 'pass its description as a string',
  Date: 'pass date.toISOString()',
  Map: 'pass Object.fromEntries(map) or [...map]',
  Set: 'pass [...set]',
  RegExp: 'pass regexp.source',
  URL: 'pass url.href',
  URLSearchParams: 'pass its text, String(params)',
  Error: 'pass error.message',
  Promise: 'await it first',
  String: 'pass the primitive, value.valueOf()',
  Boolean: 'pass the primitive, value.valueOf()',
  Uint8Array: "pass Buffer.from(bytes).toString('base64')",
  ArrayBuffer: "pass Buffer.from(bytes).toString('base64')",
}

/** How to say in JSON what JSON itself cannot carry. */
export function jsonRemedy(value: unknown): string {
  const tag = tagOf(value)
  if (tag === 'Date' && Number.isNaN(Date.prototype.getTime.call(value))) return 'pass null or a valid date as text'
  if (tag === 'Number' && typeof value === 'object') return 'pass the primitive, value.valueOf()'
  if (Array.isArray(value)) return 'pass a plain array, [...value]'
  const known = Object.hasOwn(REMEDIES, tag) ? REMEDIES[tag] : undefined
  if (known !== undefined) return known
  if (ArrayBuffer.isView(value)) return 'pass a plain array, [...value]'
  const hasToJson = typeof value === 'object' && value !== null && typeof Reflect.get(value, 'toJSON') === 'function'
  return hasToJson ? 'pass value.toJSON()' : 'pass a plain object, such as { ...value }'
}
