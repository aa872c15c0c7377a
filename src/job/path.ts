/** Characters of one member name that a path repeats: names come from outside and may be of any length. */
const NAME_SHOWN_MAX = 100

/** Where a member stands inside a payload, for people: `$.lines[3].price`, and `$["my key"]` for what is no identifier. */
export function formatPath(segments: readonly PropertyKey[]): string {
  return `$${segments.map(formatSegment).join('')}`
}

function formatSegment(segment: PropertyKey): string {
  if (typeof segment === 'number') return `[${segment}]`
  if (typeof segment === 'symbol') return `[${String(segment)}]`
  if (/^[A-Za-z_$][\w$]*$/.test(segment) && segment.length <= NAME_SHOWN_MAX) return `.${segment}`
  return `[${JSON.stringify(segment.length > NAME_SHOWN_MAX ? `${segment.slice(0, NAME_SHOWN_MAX)}…` : segment)}]`
}
