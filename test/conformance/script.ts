import type { GroupSettings, LimitSettings, QueueSettings, TenantSettings } from '../../src/scheduler/settings.js'

/** What is done to a queue, step by step. Jobs are numbered from 0 in the order in which they are enqueued. */
export type Step =
  | {
      readonly do: 'enqueue'
      readonly tenant: string
      readonly jobs: number
      readonly kind?: string
      readonly key?: string
      readonly priority?: number
    }
  | { readonly do: 'claim'; readonly count: number; readonly kinds?: readonly string[] }
  /** Ends the runs of so many jobs, those that have run longest; of all without a number. */
  | { readonly do: 'settle'; readonly jobs?: number; readonly as?: 'complete' | 'release' }
  | { readonly do: 'queue'; readonly settings: Omit<QueueSettings, 'paused'> }
  | { readonly do: 'tenant'; readonly name: string; readonly settings: Omit<TenantSettings, 'paused'> }
  | { readonly do: 'group'; readonly name: string; readonly settings: GroupSettings }
  | { readonly do: 'kind'; readonly name: string; readonly settings: Omit<LimitSettings, 'paused'> }
  | { readonly do: 'key'; readonly name: string; readonly settings: Omit<LimitSettings, 'paused'> }
  | { readonly do: 'pause' | 'resume'; readonly tenant?: string; readonly kind?: string }

export const KIND = 'k1'

/** A job that a claim started. */
export interface Started {
  readonly job: number
  readonly tenant: string
  readonly kind: string
}

/** Where a lane, or what a group has of a kind, stands after a claim. */
export interface Place {
  /** As in `lane a/k1` and `group g/k1`. */
  readonly name: string
  readonly pass: number
  readonly standing: 'idle' | 'ready' | 'parked'
}

/** Whatever schedules jobs: the model, or a database. */
export interface Subject {
  enqueue(step: Extract<Step, { do: 'enqueue' }>): Promise<void>
  claim(count: number, kinds: readonly string[]): Promise<readonly Started[]>
  settle(jobs: readonly number[], as: 'complete' | 'release'): Promise<void>
  configure(
    step: Extract<Step, { do: 'queue' | 'tenant' | 'group' | 'kind' | 'key' | 'pause' | 'resume' }>,
  ): Promise<void>
  places(): Promise<readonly Place[]>
}

export interface Round {
  readonly started: readonly Started[]
  readonly places: readonly Place[]
}

/** Takes the steps, and answers with what each claim started and where everybody stood after it. */
export async function play(subject: Subject, steps: readonly Step[]): Promise<Round[]> {
  const rounds: Round[] = []
  const running: number[] = []
  for (const step of steps) {
    if (step.do === 'enqueue') await subject.enqueue(step)
    else if (step.do === 'claim') {
      const started = [...(await subject.claim(step.count, step.kinds ?? [KIND]))].sort(
        (one, other) => one.job - other.job,
      )
      running.push(...started.map(({ job }) => job))
      rounds.push({ started, places: await subject.places() })
    } else if (step.do === 'settle') {
      await subject.settle(running.splice(0, step.jobs ?? running.length), step.as ?? 'complete')
    } else await subject.configure(step)
  }
  return rounds
}
