/**
 * Start-time fair queueing for claims of one job, from its definition: look at everybody, choose the least. No heaps, no
 * incremental counts, nothing shared with the scheduler that it checks. One kind; groups, weights, limits and pauses.
 */
export interface NaiveTenant {
  readonly name: string
  weight: number
  group: string
  limit: number
  paused: boolean
  /** Ids of jobs, in order. */
  waiting: number[]
  running: number
  pass: number
  /** In the ring. It may have run empty without anybody having looked. */
  ready: boolean
  hasArrived: boolean
}

export class NaiveScheduler {
  readonly tenants = new Map<string, NaiveTenant>()
  readonly groups = new Map<string, { weight: number; pass: number; wasReady: boolean }>()
  queueLimit = Number.POSITIVE_INFINITY

  tenant(name: string): NaiveTenant {
    const known = this.tenants.get(name)
    if (known) return known
    const limits = { limit: Number.POSITIVE_INFINITY, paused: false, running: 0 }
    const created = { name, weight: 1, group: '', ...limits, waiting: [], pass: 0, ready: false, hasArrived: false }
    this.tenants.set(name, created)
    return created
  }

  group(name: string) {
    const known = this.groups.get(name) ?? { weight: 1, pass: 0, wasReady: false }
    this.groups.set(name, known)
    return known
  }

  /** Another group is another ring, in which its pass means nothing. */
  regroup(name: string, group: string): void {
    const tenant = this.tenant(name)
    if (tenant.group === group) return
    const pass = group === '' ? this.#topFloor() : this.#floor(this.#within(group))
    const [before, wasReady] = [tenant.group, tenant.ready]
    tenant.ready = false
    tenant.group = group
    tenant.pass = pass
    tenant.ready = wasReady
    for (const each of [group, before]) this.#refresh(each)
  }

  /** The id of the job whose turn it is. */
  claim(): number | undefined {
    this.#enter()
    const running = [...this.tenants.values()].reduce((sum, { running }) => sum + running, 0)
    let foundEmpty = false
    while (running < this.queueLimit) {
      const chosen = this.#least()
      if (!chosen) return undefined
      const job = chosen.waiting.shift()
      if (job === undefined) {
        foundEmpty = true
        this.#leave(chosen)
        continue
      }
      chosen.running += 1
      chosen.pass += 1 / chosen.weight
      if (chosen.group !== '') this.group(chosen.group).pass += 1 / this.group(chosen.group).weight
      // Once a claim has looked at somebody in vain, it also looks whether those that it serves have more.
      if (foundEmpty && chosen.waiting.length === 0) this.#leave(chosen)
      return job
    }
    return undefined
  }

  hasRoom({ paused, running, limit }: NaiveTenant): boolean {
    return !paused && running < limit
  }

  #within(group: string): NaiveTenant[] {
    return [...this.tenants.values()].filter((tenant) => tenant.group === group)
  }

  /** The tenant with the smallest pass of the group or tenant with the smallest pass. Whoever has no room leaves the ring. */
  #least(): NaiveTenant | undefined {
    const top = [
      ...this.#within('').map((tenant) => ({ ...tenant, members: [tenant] })),
      ...[...this.groups].map(([name, { pass }]) => ({ name, pass, ready: true, members: this.#within(name) })),
    ]
      .filter(({ members }) => members.some(({ ready }) => ready))
      .sort(byPass)
    const members = top[0]?.members.filter(({ ready }) => ready).sort(byPass) ?? []
    const [least] = members
    if (!least || this.hasRoom(least)) return least
    this.#leave(least)
    least.hasArrived = true
    return this.#least()
  }

  #leave(tenant: NaiveTenant): void {
    tenant.ready = false
    this.#refresh(tenant.group)
  }

  #enter(): void {
    const entering = [...this.tenants.values()].filter((each) => each.hasArrived && !each.ready && this.hasRoom(each))
    const floors = new Map(entering.map(({ group }) => [group, this.#floor(this.#within(group))]))
    for (const tenant of this.tenants.values()) if (tenant.ready) tenant.hasArrived = false
    const topFloor = this.#topFloor()
    floors.set('', topFloor)
    for (const tenant of entering) {
      tenant.ready = true
      tenant.hasArrived = false
      tenant.pass = Math.max(tenant.pass, floors.get(tenant.group) ?? 0)
    }
    for (const name of new Set(entering.map(({ group }) => group))) this.#refresh(name)
  }

  #refresh(name: string): void {
    if (name === '') return
    const group = this.group(name)
    const isReady = this.#within(name).some(({ ready }) => ready)
    if (isReady && !group.wasReady) {
      group.pass = Math.max(group.pass, this.#topFloor())
    }
    group.wasReady = isReady
  }

  #topFloor(): number {
    const groups = [...this.groups.values()].map(({ pass, wasReady }) => ({ pass, ready: wasReady }))
    return this.#floor([...this.#within(''), ...groups])
  }

  #floor(members: readonly { readonly pass: number; readonly ready: boolean }[]): number {
    const passes = (ready: boolean) => members.filter((each) => each.ready === ready).map(({ pass }) => pass)
    const waiting = passes(true)
    return waiting.length > 0 ? Math.min(...waiting) : Math.max(0, ...passes(false))
  }
}

function byPass(one: { pass: number; name: string }, other: { pass: number; name: string }): number {
  return one.pass - other.pass || (one.name < other.name ? -1 : 1)
}
