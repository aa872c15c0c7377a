import { comesBefore } from './job.js'
import type { Lane } from './lane.js'

/** Jobs that one lane may give now. */
export interface Quota {
  readonly lane: Lane
  readonly jobs: number
}

/** Splits what a tenant may have over its ready lanes by the order of their jobs. A claim of one kind need not look at jobs. */
export function split(lanes: readonly Lane[], share: number, kinds: number): Quota[] {
  const [only] = lanes
  if (kinds === 1 && only) return [{ lane: only, jobs: share }]
  // A lane without jobs is looked at all the same, to be found empty.
  const empty = lanes.filter((lane) => lane.backlog.size === 0).slice(0, share)
  const counts = new Map<Lane, number>(empty.map((lane) => [lane, 1]))
  const heads = lanes
    .flatMap((lane) => lane.backlog.leading(share))
    .sort((one, other) => (comesBefore(one, other) ? -1 : 1))
  for (const { lane } of heads.slice(0, share - empty.length)) counts.set(lane, (counts.get(lane) ?? 0) + 1)
  return [...counts].map(([lane, jobs]) => ({ lane, jobs }))
}
