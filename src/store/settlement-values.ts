import { unreachable } from '../assert.js'
import type { Outcome, Settlement } from '../settle/outcome.js'

type Of<Type extends Outcome['type']> = Settlement & { readonly outcome: Extract<Outcome, { readonly type: Type }> }

export interface SortedSettlements {
  readonly completed: readonly Of<'complete'>[]
  readonly requeued: readonly Of<'retry' | 'snooze' | 'release'>[]
  readonly finalized: readonly Of<'cancel' | 'discard'>[]
}

/** By the statement that writes them, each in the order of the ids: two batches that meet then wait, and do not deadlock. */
export function sortOutcomes(settlements: readonly Settlement[]): SortedSettlements {
  const completed: Of<'complete'>[] = []
  const requeued: Of<'retry' | 'snooze' | 'release'>[] = []
  const finalized: Of<'cancel' | 'discard'>[] = []
  for (const settlement of [...settlements].sort(byId)) {
    const { outcome } = settlement
    switch (outcome.type) {
      case 'complete':
        completed.push({ ...settlement, outcome })
        break
      case 'retry':
      case 'snooze':
      case 'release':
        requeued.push({ ...settlement, outcome })
        break
      case 'cancel':
      case 'discard':
        finalized.push({ ...settlement, outcome })
        break
      default:
        unreachable(outcome)
    }
  }
  return { completed, requeued, finalized }
}

/** Ids, lease ids, outcomes, delays, errors. */
export function requeueValues(settlements: SortedSettlements['requeued']): unknown[] {
  return [
    settlements.map(({ jobId }) => jobId),
    settlements.map(({ leaseId }) => leaseId),
    settlements.map(({ outcome }) => outcome.type),
    settlements.map(({ outcome }) => (outcome.type === 'release' ? 0 : outcome.delayMs)),
    settlements.map(({ outcome }) => (outcome.type === 'retry' ? JSON.stringify(outcome.failure) : null)),
  ]
}

/** Ids, lease ids, states, errors. */
export function finalizeValues(settlements: SortedSettlements['finalized']): unknown[] {
  return [
    settlements.map(({ jobId }) => jobId),
    settlements.map(({ leaseId }) => leaseId),
    settlements.map(({ outcome }) => (outcome.type === 'cancel' ? 'cancelled' : 'discarded')),
    settlements.map(({ outcome }) => JSON.stringify(outcome.type === 'cancel' ? reasonOf(outcome) : outcome.failure)),
  ]
}

function reasonOf(outcome: Extract<Outcome, { readonly type: 'cancel' }>) {
  return { name: 'Cancelled', message: outcome.reason }
}

/** Decimal strings of 64 bits: the shorter is the smaller. */
function byId(a: Settlement, b: Settlement): number {
  return a.jobId.length - b.jobId.length || (a.jobId < b.jobId ? -1 : a.jobId > b.jobId ? 1 : 0)
}
