import { KIND, type Round } from './script.js'

/** What each claim started, as the cases write it. */
export function startedBy(rounds: readonly Round[]): string[] {
  return rounds.map(({ started }) =>
    started
      .map(({ tenant, kind }) => (kind === KIND ? tenant : `${tenant}/${kind}`))
      .sort()
      .join(' '),
  )
}
