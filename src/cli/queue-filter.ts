import type { Command } from 'commander'
import type { JobFilter } from '../job/filter.js'

/** The queue as an argument, since what is done to one should be meant; and which part of it. */
export function filterOptions(command: Command): Command {
  return command
    .argument('<queue>', 'name of the queue')
    .option('--tenant <tenant>', 'only this tenant')
    .option('--kind <kind>', 'only this kind')
}

/** `Queue mail, tenant acme`. */
export function described(word: string, queue: string, { tenant, kind }: JobFilter): string {
  const parts = [`${word} ${queue}`, ...(tenant ? [`tenant ${tenant}`] : []), ...(kind ? [`kind ${kind}`] : [])]
  return parts.join(', ')
}

export function filterOf({ tenant, kind }: JobFilter): JobFilter {
  return { ...(tenant !== undefined && { tenant }), ...(kind !== undefined && { kind }) }
}
