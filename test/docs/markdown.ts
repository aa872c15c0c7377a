import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../../', import.meta.url)

export function pathOf(path: string): string {
  return fileURLToPath(new URL(path, ROOT))
}

export function textOf(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8')
}

/** Every page that is written for readers, as a path from the root of the repository. */
export function pages(): readonly string[] {
  const inRoot = readdirSync(ROOT).filter((name) => name.endsWith('.md'))
  const inDocs = readdirSync(new URL('docs/', ROOT), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
  return [...inRoot, ...inDocs].sort()
}

export interface CodeBlock {
  readonly page: string
  /** Of its first line of code, 1 for the first of the page. */
  readonly line: number
  readonly language: string
  readonly code: string
}

/** The fenced blocks of a page. */
export function codeBlocks(page: string): readonly CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: { line: number; language: string; code: string[] } | undefined
  for (const [index, text] of textOf(page).split('\n').entries()) {
    const fence = /^```(\w*)/.exec(text)
    if (open && text === '```') {
      blocks.push({ page, line: open.line, language: open.language, code: `${open.code.join('\n')}\n` })
      open = undefined
    } else if (open) open.code.push(text)
    else if (fence) open = { line: index + 2, language: fence[1] ?? '', code: [] }
  }
  if (open) throw new Error(`${page}: the block of line ${open.line} is never closed`)
  return blocks
}

export function blocksIn(language: string): readonly CodeBlock[] {
  return pages()
    .flatMap(codeBlocks)
    .filter((block) => block.language === language)
}

export interface Link {
  readonly page: string
  readonly text: string
  readonly target: string
}

/** Links to files of the repository; not those to the web, and none of what stands in code. */
export function localLinks(page: string): readonly Link[] {
  const prose = textOf(page).replaceAll(/^```[\s\S]*?^```/gm, '')
  return [...prose.matchAll(/\[([^\]]*)\]\(([^)\s]+)\)/g)]
    .map(([, text = '', target = '']) => ({ page, text, target }))
    .filter(({ target }) => !/^[a-z]+:/.test(target))
}
