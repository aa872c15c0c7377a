/** One name in the spelling of another language: `tenantRate` is `tenant_rate` in SQL and `--tenant-rate` in a shell. */

export function camelCase(snake: string): string {
  return snake.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function snakeCase(camel: string): string {
  return separated(camel, '_')
}

export function kebabCase(camel: string): string {
  return separated(camel, '-')
}

/** As words of a sentence. */
export function spaced(camel: string): string {
  return separated(camel, ' ')
}

function separated(camel: string, by: string): string {
  return camel.replaceAll(/[A-Z]/g, (letter) => `${by}${letter.toLowerCase()}`)
}
