/** Whoever is in a heap knows where, so that it can move or leave in logarithmic time. */
export interface Slotted {
  /** Its place in the heap that holds it; -1 when none does. */
  slot: number
}

/** A binary heap whose entries may change their order or leave at any time. An entry is in one heap at most. */
export class Heap<Entry extends Slotted> {
  readonly #entries: Entry[] = []
  readonly #before: (one: Entry, other: Entry) => boolean

  /** `before` must be a strict total order, or what comes first would depend on history. */
  constructor(before: (one: Entry, other: Entry) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#entries.length
  }

  get first(): Entry | undefined {
    return this.#entries[0]
  }

  /** In no particular order. */
  [Symbol.iterator](): Iterator<Entry> {
    return this.#entries[Symbol.iterator]()
  }

  push(entry: Entry): void {
    this.#entries.push(entry)
    this.#rise(entry, this.#entries.length - 1)
  }

  shift(): Entry | undefined {
    const first = this.#entries[0]
    if (first) this.remove(first)
    return first
  }

  remove(entry: Entry): void {
    const last = this.#entries.pop() as Entry
    if (last !== entry) this.#settle(last, entry.slot)
    entry.slot = -1
  }

  /** To be called after whatever `before` looks at has changed. */
  moved(entry: Entry): void {
    this.#settle(entry, entry.slot)
  }

  /** The first `count` entries in order, which stay where they are. */
  leading(count: number): Entry[] {
    if (count === 1) return this.#entries.slice(0, 1)
    if (count >= this.#entries.length)
      return this.#entries.toSorted((one, other) => (this.#before(one, other) ? -1 : 1))
    const found: Entry[] = []
    // Entries whose parents have been found, the next one last.
    const frontier: Entry[] = this.#entries.slice(0, 1)
    while (found.length < count) {
      const next = frontier.pop()
      if (!next) break
      found.push(next)
      this.#await(frontier, next.slot * 2 + 1)
      this.#await(frontier, next.slot * 2 + 2)
    }
    return found
  }

  #await(frontier: Entry[], slot: number): void {
    const entry = this.#entries[slot]
    if (!entry) return
    let place = frontier.length
    while (place > 0 && this.#before(frontier[place - 1] as Entry, entry)) place -= 1
    frontier.splice(place, 0, entry)
  }

  #settle(entry: Entry, slot: number): void {
    const parent = this.#entries[(slot - 1) >> 1]
    if (slot > 0 && parent && this.#before(entry, parent)) this.#rise(entry, slot)
    else this.#sink(entry, slot)
  }

  #rise(entry: Entry, from: number): void {
    let slot = from
    while (slot > 0) {
      const parent = this.#entries[(slot - 1) >> 1] as Entry
      if (!this.#before(entry, parent)) break
      this.#put(parent, slot)
      slot = (slot - 1) >> 1
    }
    this.#put(entry, slot)
  }

  #sink(entry: Entry, from: number): void {
    const entries = this.#entries
    let slot = from
    for (;;) {
      const left = slot * 2 + 1
      if (left >= entries.length) break
      const right = left + 1
      const least =
        right < entries.length && this.#before(entries[right] as Entry, entries[left] as Entry) ? right : left
      const child = entries[least] as Entry
      if (!this.#before(child, entry)) break
      this.#put(child, slot)
      slot = least
    }
    this.#put(entry, slot)
  }

  #put(entry: Entry, slot: number): void {
    this.#entries[slot] = entry
    entry.slot = slot
  }
}
