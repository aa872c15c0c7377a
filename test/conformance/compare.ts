import type { Place, Round, Started } from './script.js'

/** Passes are sums of doubles, which two implementations may add in different orders. */
const TOLERANCE = 1e-9

/** Every sentence is a difference; none is what we want. */
export function differences(expected: readonly Round[], actual: readonly Round[]): string[] {
  return expected.flatMap((round, index) => {
    const other = actual[index] ?? { started: [], places: [] }
    return [...startedDifferently(round.started, other.started), ...placedDifferently(round.places, other.places)].map(
      (difference) => `claim ${index}: ${difference}`,
    )
  })
}

function startedDifferently(expected: readonly Started[], actual: readonly Started[]): string[] {
  const [one, other] = [expected, actual].map((started) =>
    started.map((each) => `${each.tenant}/${each.kind}#${each.job}`).join(' '),
  )
  return one === other ? [] : [`expected ${one || 'nothing'}, got ${other || 'nothing'}`]
}

function placedDifferently(expected: readonly Place[], actual: readonly Place[]): string[] {
  const others = new Map(actual.map((place) => [place.name, place]))
  return expected.flatMap(({ name, pass, standing }) => {
    const other = others.get(name)
    // What was never ready need not have a place yet.
    if (!other) return standing === 'idle' && pass === 0 ? [] : [`expected ${name} to have a place`]
    const isSame = other.standing === standing && Math.abs(other.pass - pass) <= TOLERANCE * Math.max(1, Math.abs(pass))
    return isSame ? [] : [`expected ${name} to be ${standing} at ${pass}, got ${other.standing} at ${other.pass}`]
  })
}
