import { hostname } from 'node:os'
import { systemClock } from './clock.js'
import type { ResolvedTenantryOptions } from './config.js'
import { Connection } from './driver/connection.js'
import { NotificationConnection } from './driver/notifications.js'
import type { DatabasePool } from './driver/pool.js'
import { QueueHints } from './notify/queue-hints.js'
import { systemRandom } from './random.js'
import { NumbersStore } from './store/numbers-store.js'
import { PgStore } from './store/pg-store.js'
import type { ResolvedWorkerOptions } from './worker/options.js'
import type { WorkerDependencies } from './worker/worker.js'

/**
 * The connections of one worker: one for claims, which may wait seconds for a lock; one for heartbeats and outcomes, which
 * must not stand behind a claim; one that listens. Handlers' transactions use the pool, so they cannot starve these.
 */
export function workerDependencies(
  options: ResolvedTenantryOptions,
  pool: DatabasePool,
  worker: Pick<ResolvedWorkerOptions, 'listen'>,
): WorkerDependencies {
  const { client, schema, connectionAdvice, logger } = options
  const claims = new Connection({ client, logger })
  const settles = new Connection({ client, logger })
  const claimStore = new PgStore(claims, schema, connectionAdvice)
  const hints = worker.listen ? new QueueHints() : undefined
  let listener: NotificationConnection | undefined
  return {
    claimStore,
    settleStore: new PgStore(settles, schema, connectionAdvice),
    // Behind claims rather than before outcomes: nobody waits for numbers.
    numbersStore: new NumbersStore(claims, schema, connectionAdvice),
    transactions: pool,
    notifications: hints,
    checkReady: async () => {
      const channel = await claimStore.channel()
      if (!hints || listener) return
      listener = new NotificationConnection({
        client: options.listenClient,
        channel,
        onNotification: (queue) => hints.hint(queue),
        onConnected: () => hints.hintAll(),
        random: systemRandom,
        logger,
      })
      hints.listenThrough(listener)
      await listener.start()
    },
    close: async () => {
      await Promise.all([claims.stop(), settles.stop(), listener?.stop()])
    },
    workerId: `${hostname()}:${process.pid}:${systemRandom.uuid().slice(0, 8)}`,
    log: logger,
    clock: systemClock,
    random: systemRandom,
  }
}
