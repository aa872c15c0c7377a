import type { ErrorFacts, HolderFacts } from './why.js'

/** A length of time, as one would say it. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} days`
}

/** `1 job`, `2 jobs`, and so on with any noun that takes an s. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

/** A name inside a sentence. */
export function named(name: string): string {
  return `"${name}"`
}

/** A list of names inside a sentence. */
export function listed(names: readonly string[]): string {
  return names.map(named).join(', ')
}

/** A name in a shell command. */
export function shellWord(word: string): string {
  return /^[\w.@:/+-]+$/.test(word) && !word.startsWith('-') ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** A name in a call. */
export function literal(text: string): string {
  const json = JSON.stringify(text)
  return json.includes("'") ? json : `'${json.slice(1, -1).replaceAll('\\"', '"')}'`
}

export function errorWords({ attempt, name, message }: ErrorFacts): string {
  const end = /[.!?…]$/.test(message) ? '' : '.'
  return `Attempt ${attempt} failed with ${name}: ${message}${end}`
}

/** `pid 42 (psql, idle in transaction for 3 min)`. */
export function holderWords(holder: HolderFacts): string {
  const { pid, prepared, application, state, transactionMs } = holder
  if (prepared !== undefined) {
    return `the prepared transaction ${named(prepared)}${transactionMs ? `, ${duration(transactionMs)} old` : ''}`
  }
  const since = transactionMs ? `, in a transaction for ${duration(transactionMs)}` : ''
  const details = [application || 'no application name', state ?? 'state not shown'].join(', ')
  return `pid ${pid} (${details}${since})`
}

export function holdersWords(holders: readonly HolderFacts[]): string {
  return holders.map(holderWords).join(' and ') || 'somebody whom the server does not show'
}
