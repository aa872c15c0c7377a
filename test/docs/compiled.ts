import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { pathOf } from './markdown.js'

/** What the short blocks take for granted, as their prose says. */
const AMBIENT = `
import type { ClientBase } from 'pg'
import type { JobDefinition, Tenantry, Worker } from 'tenantry'
declare global {
  /** The caller's open transaction. */
  var client: ClientBase
  var tenantry: Tenantry
  var worker: Worker
  var sendInvoice: JobDefinition<{ invoiceId: string }>
  /** Stands for what an application does. */
  function charge(invoiceId: string, options: { signal: AbortSignal }): Promise<{ paid: boolean; retryInMs: number }>
}
`

/** As strict as a careful user's project. */
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  types: ['node'],
  typeRoots: [pathOf('node_modules/@types')],
}

export interface Compiled {
  /** The folder of the compiled modules, each under the name of its source with `.js`. */
  readonly folder: string
  /** One line for each error of the compiler, with the name of the source. */
  readonly errors: readonly string[]
  remove(): void
}

/**
 * Compiles sources as an application would that has Tenantry as a dependency: against the types of the built package,
 * into a folder inside of it, from where `tenantry` and `pg` are found.
 */
export function compile(sources: ReadonlyMap<string, string>): Compiled {
  const folder = mkdtempSync(pathOf('dist/docs-'))
  const files = [...new Map([...sources, ['ambient.d.ts', AMBIENT]])].map(([name, text]) => {
    const file = join(folder, name)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text)
    return file
  })
  const program = ts.createProgram(files, { ...OPTIONS, rootDir: folder, outDir: folder })
  const diagnostics = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics]
  return {
    folder,
    errors: diagnostics.map((diagnostic) => describe(diagnostic, folder)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function describe({ file, start, messageText }: ts.Diagnostic, folder: string): string {
  const text = ts.flattenDiagnosticMessageText(messageText, ' ')
  if (!file || start === undefined) return text
  const { line } = file.getLineAndCharacterOfPosition(start)
  return `${relative(folder, file.fileName)}:${line + 1}: ${text}`
}
