import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { type Link, localLinks, pages, pathOf, textOf } from './markdown.js'

const links = pages().flatMap(localLinks)

/** The file that a link leads to, as a path from the root of the repository. */
const targetOf = ({ page, target }: Link) => join(dirname(page), target.replace(/#.*$/, '')) || page

test('every link of the documents leads to a file', () => {
  const broken = links.filter((link) => !existsSync(pathOf(targetOf(link))))
  expect(broken.map(({ page, target }) => `${page}: ${target}`)).toEqual([])
})

test('every test that the documents name as a proof has that name', () => {
  const proofs = links.filter((link) => /\.test\.ts$/.test(targetOf(link)))
  const wrong = proofs.filter((link) => !unquoted(textOf(targetOf(link))).includes(unquoted(link.text)))
  expect(wrong.map(({ page, text, target }) => `${page}: ${target} has no test "${text}"`)).toEqual([])
})

test('every decision is in the index', () => {
  const decisions = pages().filter((page) => /^docs\/adr\/\d/.test(page))
  const indexed = localLinks('docs/adr/README.md').map(targetOf)
  expect(decisions.filter((page) => !indexed.includes(page))).toEqual([])
})

/** Titles are the same whether their apostrophes are escaped in the source or not. */
function unquoted(text: string): string {
  return text.replaceAll(/[\\'"`]/g, '')
}
