import type { Entry } from '../../src/scheduler/lane.js'
import { Scheduler } from '../../src/scheduler/scheduler.js'
import type { Place, Started, Step, Subject } from './script.js'
import { KIND } from './script.js'

/** The scheduler in memory. A millisecond passes from step to step. */
export class ModelSubject implements Subject {
  readonly #scheduler = new Scheduler()
  readonly #jobs: ReturnType<Scheduler['enqueue']>[] = []
  #nowMs = 0

  async enqueue({ tenant, jobs, kind = KIND, key, priority = 0 }: Extract<Step, { do: 'enqueue' }>): Promise<void> {
    const nowMs = this.#tick()
    for (let each = 0; each < jobs; each += 1) {
      this.#jobs.push(this.#scheduler.enqueue({ tenant, kind, priority, ...(key !== undefined && { key }) }, nowMs))
    }
  }

  async claim(count: number, kinds: readonly string[]): Promise<readonly Started[]> {
    const started = this.#scheduler.claim(kinds, count, this.#tick())
    return started.map(({ id, lane }) => ({ job: id - 1, tenant: lane.member.name, kind: lane.kind }))
  }

  async settle(jobs: readonly number[], as: 'complete' | 'release'): Promise<void> {
    const nowMs = this.#tick()
    for (const job of jobs) this.#scheduler.settle(this.#job(job), { type: as }, nowMs)
  }

  async configure(step: Parameters<Subject['configure']>[0]): Promise<void> {
    this.#tick()
    if (step.do === 'queue') this.#scheduler.configureQueue(step.settings)
    else if (step.do === 'tenant') this.#scheduler.configureTenant(step.name, step.settings)
    else if (step.do === 'group') this.#scheduler.configureGroup(step.name, step.settings)
    else if (step.do === 'kind') this.#scheduler.configureKind(step.name, step.settings)
    else if (step.do === 'key') this.#scheduler.configureKey(step.name, step.settings)
    else this.#pause(step.do === 'pause', step)
  }

  async places(): Promise<readonly Place[]> {
    const { tenants, groups } = this.#scheduler.state
    const place = (sort: string, entry: Entry) => ({
      name: `${sort} ${entry.member.name}/${entry.kind}`,
      pass: entry.pass,
      standing: entry.standing,
    })
    return [
      ...[...tenants.values()].flatMap(({ entries }) => [...entries.values()].map((lane) => place('lane', lane))),
      ...[...groups.values()].flatMap(({ entries }) => [...entries.values()].map((entry) => place('group', entry))),
    ]
  }

  #pause(paused: boolean, { tenant, kind }: { readonly tenant?: string; readonly kind?: string }): void {
    if (tenant !== undefined) this.#scheduler.configureTenant(tenant, { paused })
    else if (kind !== undefined) this.#scheduler.configureKind(kind, { paused })
    else this.#scheduler.configureQueue({ paused })
  }

  #job(number: number) {
    const job = this.#jobs[number]
    if (!job) throw new Error(`expected job ${number} to have been enqueued`)
    return job
  }

  #tick(): number {
    this.#nowMs += 1
    return this.#nowMs
  }
}
