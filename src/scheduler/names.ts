/**
 * Whether a name comes before another where PostgreSQL compares them with collation "C": by the bytes of their UTF-8,
 * which is the order of their code points. JavaScript compares UTF-16, where U+10000 comes before U+E000.
 */
export function isBefore(one: string, other: string): boolean {
  let at = 0
  while (at < one.length && at < other.length && one.charCodeAt(at) === other.charCodeAt(at)) at += 1
  const [unit, otherUnit] = [one.charCodeAt(at), other.charCodeAt(at)]
  if (Number.isNaN(unit) || Number.isNaN(otherUnit)) return one.length < other.length
  return isSurrogate(unit) === isSurrogate(otherUnit) ? unit < otherUnit : isSurrogate(otherUnit)
}

/** Half of a code point above U+FFFF; two that differ only in their second halves compare rightly by these. */
function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff
}

/** Whose turn it is when passes are equal. A group may be called like a tenant. */
export function precedes(one: Named, other: Named): boolean {
  return one.name === other.name ? !one.isGroup && other.isGroup : isBefore(one.name, other.name)
}

export interface Named {
  readonly name: string
  readonly isGroup: boolean
}
