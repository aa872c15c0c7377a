import { randomUUID } from 'node:crypto'

/** The only source of chance: pure decisions are given one of these and can be tested with a seeded one. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number
  /** A random UUID. A lease is fenced by one, so it must never repeat. */
  uuid(): string
}

export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => randomUUID(),
}

/** Spreads `ms` evenly over ±`fraction`, so that many processes that started together do not act together. */
export function jittered(ms: number, random: Random, fraction = 0.25): number {
  return ms * (1 - fraction + 2 * fraction * random.next())
}
