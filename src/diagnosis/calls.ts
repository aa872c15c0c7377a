import { kebabCase } from '../casing.js'
import type { Remedy } from './why.js'
import { literal, named, shellWord } from './words.js'

/** Whose setting is changed. */
export type SettingTarget =
  | { readonly scope: 'queue'; readonly queue: string }
  | { readonly scope: 'tenant' | 'kind' | 'key'; readonly queue: string; readonly name: string }

export interface SettingValue {
  /** As in TypeScript. */
  readonly name: string
  readonly value: number | { readonly limit: number }
}

/** The exact call and command that change one setting. */
export function configure(target: SettingTarget, setting: SettingValue, sentence: string): Remedy {
  const { scope, queue } = target
  const method = `configure${scope.slice(0, 1).toUpperCase()}${scope.slice(1)}`
  const names = scope === 'queue' ? [queue] : [queue, target.name]
  const value = typeof setting.value === 'number' ? String(setting.value) : `{ limit: ${setting.value.limit} }`
  const option = `--${kebabCase(setting.name)}`
  const argument = typeof setting.value === 'number' ? String(setting.value) : `${setting.value.limit}/s`
  const command =
    scope === 'queue'
      ? `npx tenantry queues set ${shellWord(queue)} ${option} ${argument}`
      : `npx tenantry ${scope}s set ${shellWord(target.name)} --queue ${shellWord(queue)} ${option} ${argument}`
  return {
    sentence,
    command,
    call: `await tenantry.${method}(${names.map(literal).join(', ')}, { ${setting.name}: ${value} })`,
  }
}

/** The exact call and command that end a pause. */
export function resume(queue: string, scope: { readonly tenant?: string; readonly kind?: string }): Remedy {
  const [[word, name] = []] = Object.entries(scope)
  const sentence =
    name === undefined ? `Resume queue ${named(queue)}.` : `Resume ${word} ${named(name)} of queue ${named(queue)}.`
  const option = name === undefined ? '' : ` --${word} ${shellWord(name)}`
  const object = name === undefined ? '' : `, { ${word}: ${literal(name)} }`
  return {
    sentence,
    command: `npx tenantry resume ${shellWord(queue)}${option}`,
    call: `await tenantry.resume(${literal(queue)}${object})`,
  }
}
