import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

/** Style as a test: what can be checked by a machine is, on the real tree. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface SourceFile {
  /** From `src`, as in `worker/slots.ts`. */
  readonly path: string
  readonly text: string
  readonly tree: ts.SourceFile
}

const files: readonly SourceFile[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .sort()
  .map((path) => {
    const text = readFileSync(join(ROOT, 'src', path), 'utf8')
    return { path, text, tree: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true) }
  })

const written = files.filter(({ path }) => !path.endsWith('.gen.ts'))

/** Lowest first. A file may import from its own layer and from those below. */
const LAYERS: readonly { readonly name: string; readonly of: RegExp }[] = [
  { name: 'base', of: /^(assert|casing|clock|errors|file-errors|limits|logger|options|random|service)\.ts$/ },
  {
    name: 'domain',
    of: /^(job|retry|settings|scheduler|diagnosis)\/|^numbers\/(aggregator|histogram|numbers|options|window)\.ts$|^settle\/(outcome|decide|failure|planned-exit)\.ts$/,
  },
  { name: 'driver', of: /^driver\// },
  { name: 'store', of: /^store\// },
  {
    name: 'runtime',
    of: /^(worker|lease|maintenance|notify|operations)\/|^settle\/(completer|queue-completer|refusal)\.ts$|^numbers\/flusher\.ts$/,
  },
  { name: 'client', of: /^(config|tenantry|transaction-option|worker-dependencies|index)\.ts$/ },
  { name: 'embedded server', of: /^embedded\// },
  { name: 'workload', of: /^(workload|demo)\// },
  { name: 'edges', of: /^(bench|cli|simulate)\// },
]

function layerOf(path: string): number {
  return LAYERS.findIndex(({ of }) => of.test(path))
}

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node)
  ts.forEachChild(node, (child) => visit(child, see))
}

function importsOf({ path, tree }: SourceFile): { readonly from: string; readonly isType: boolean }[] {
  const found: { from: string; isType: boolean }[] = []
  visit(tree, (node) => {
    if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) return
    if (!node.moduleSpecifier || !ts.isStringLiteral(node.moduleSpecifier)) return
    const from = node.moduleSpecifier.text
    const isType = ts.isImportDeclaration(node) ? isTypeImport(node.importClause) : node.isTypeOnly
    found.push({
      from: from.startsWith('.') ? normalize(join(dirname(path), from)).replace(/\.js$/, '.ts') : from,
      isType,
    })
  })
  return found
}

/** `import type`, or an import in braces of nothing but types. */
function isTypeImport(clause: ts.ImportClause | undefined): boolean {
  if (clause?.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  const bindings = clause?.namedBindings
  return (
    !clause?.name &&
    bindings !== undefined &&
    ts.isNamedImports(bindings) &&
    bindings.elements.every((each) => each.isTypeOnly)
  )
}

describe('layers', () => {
  test('every file is in one layer', () => {
    const counts = files.map(({ path }) => [path, LAYERS.filter(({ of }) => of.test(path)).length] as const)
    expect(counts.filter(([, layers]) => layers !== 1)).toEqual([])
  })

  test('imports go down, types too', () => {
    const upward = files.flatMap((file) =>
      importsOf(file)
        .filter(({ from }) => from.endsWith('.ts') && layerOf(from) > layerOf(file.path))
        .map(({ from }) => `${file.path} imports ${from}`),
    )
    expect(upward).toEqual([])
  })

  test('no file needs itself by way of others', () => {
    const graph = new Map(
      files.map((file) => [
        file.path,
        importsOf(file).flatMap(({ from, isType }) => (from.endsWith('.ts') && !isType ? [from] : [])),
      ]),
    )
    const reaches = (from: string, seen = new Set<string>()): Set<string> => {
      for (const next of graph.get(from) ?? []) {
        if (seen.has(next)) continue
        seen.add(next)
        reaches(next, seen)
      }
      return seen
    }
    expect([...graph.keys()].filter((path) => reaches(path).has(path))).toEqual([])
  })

  /** What the edges do to databases of their own, such as a scratch schema, is no business of the driver's. */
  test('node-postgres is imported as a value by the driver and by the edges alone', () => {
    const allowed = /^(driver|cli|workload|demo|bench)\//
    const importing = files.filter((file) => importsOf(file).some(({ from, isType }) => from === 'pg' && !isType))
    expect(importing.map(({ path }) => path).filter((path) => !allowed.test(path))).toEqual([])
  })
})

describe('what only one place may do', () => {
  const rules: readonly (readonly [name: string, pattern: RegExp, allowed: RegExp])[] = [
    ['read a clock', /\b(Date\.now|performance\.now|process\.hrtime)\b|new Date\(\)/, /^clock\.ts$/],
    ['take a chance', /\bMath\.random\b|\brandom(UUID|Bytes|Int)\b/, /^random\.ts$/],
    ['read the environment', /\bprocess\.env\b/, /^cli\/main\.ts$/],
    ['end the process', /\bprocess\.exit(Code)?\b/, /^cli\/main\.ts$|^workload\/worker-process\.ts$/],
    ['write to the console', /\bconsole\.\w+\(/, /^cli\//],
  ]

  test.each(rules)('%s', (_name, pattern, allowed) => {
    const found = written.filter(({ path, tree }) => !allowed.test(path) && pattern.test(codeOf(tree)))
    expect(found.map(({ path }) => path)).toEqual([])
  })
})

/** The text without its comments, which may speak of anything. */
function codeOf(tree: ts.SourceFile): string {
  const printer = ts.createPrinter({ removeComments: true })
  return printer.printFile(tree)
}

describe('size', () => {
  test('a file has at most 400 lines', () => {
    expect(written.filter(({ text }) => text.split('\n').length > 401).map(({ path }) => path)).toEqual([])
  })

  test('a function has at most 70 lines', () => {
    const long: string[] = []
    for (const { path, tree } of written) {
      visit(tree, (node) => {
        if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) return
        const [start, end] = [node.getStart(tree), node.getEnd()].map(
          (at) => tree.getLineAndCharacterOfPosition(at).line,
        ) as [number, number]
        if (end - start + 1 > 70) long.push(`${path}:${start + 1}`)
      })
    }
    expect(long).toEqual([])
  })

  test('a function takes at most three parameters and an options object', () => {
    const many: string[] = []
    for (const { path, tree } of written) {
      visit(tree, (node) => {
        if (ts.isFunctionLike(node) && node.parameters.length > 4)
          many.push(`${path}: ${node.name?.getText(tree) ?? 'anonymous'}`)
      })
    }
    expect(many).toEqual([])
  })
})

describe('words', () => {
  /** The word to use, and those that other systems use for it. */
  const FORBIDDEN: readonly (readonly [ours: string, theirs: RegExp])[] = [
    ['job', /^tasks?$|^items?$/],
    ['claim', /^dequeue[ds]?$|^acquire[ds]?$|^grab(bed|s)?$|^fetch(e[ds]|ing)?$/],
    ['settle', /^n?acks?$/],
    ['reclaim', /^rescue[ds]?$|^reap(er|ed|s)?$/],
    ['tenant', /^customers?$|^orgs?$/],
    ['worker', /^consumers?$|^processors?$/],
  ]

  test('identifiers use the words of the glossary', () => {
    const found: string[] = []
    for (const { path, tree } of written) {
      visit(tree, (node) => {
        if (!ts.isIdentifier(node) && !ts.isPrivateIdentifier(node)) return
        const words = node.text.split(/[^A-Za-z]|(?=[A-Z])/).map((word) => word.toLowerCase())
        const [ours] = FORBIDDEN.find(([, theirs]) => words.some((word) => theirs.test(word))) ?? []
        if (ours) found.push(`${path}: ${node.text} (our word is ${ours})`)
      })
    }
    expect([...new Set(found)]).toEqual([])
  })

  test('no file is called after nothing in particular', () => {
    const vague = /(^|[-/])(utils?|helpers?|common|misc|managers?|data|info|lib|shared)(\.|-|\/)/
    const all = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter((path) =>
      /^(src|test|scripts|sql|bench|examples)\//.test(path),
    )
    expect(all.filter((path) => vague.test(path))).toEqual([])
  })

  test('tables, columns and functions use them too', () => {
    const sql = readdirSync(join(ROOT, 'sql/migrations'))
      .map((name) => readFileSync(join(ROOT, 'sql/migrations', name), 'utf8'))
      .join('\n')
    const names = [...sql.matchAll(/create (?:unlogged )?(?:table|function|type|index) (?::schema\.)?(\w+)/g)].map(
      ([, name]) => name ?? '',
    )
    expect(names.length).toBeGreaterThan(20)
    const words = names.flatMap((name) => name.split('_'))
    expect(words.filter((word) => FORBIDDEN.some(([, theirs]) => theirs.test(word)))).toEqual([])
  })
})

describe('SQL', () => {
  /** How a statement of ours would begin. English sentences do not. */
  const STATEMENT =
    /^\s*(select\s|insert into\s|update [\w":.]+ set\s|delete from\s|with \w+ as\b|create (or replace )?(unlogged )?(table|schema|index|function|type|database)\b|alter (table|function|role|database)\b|drop (schema|table|index|function|database)\b|truncate\s|lock table\s|(un)?listen\s|notify\s|begin( isolation\b|$)|commit$|rollback( to\b|$)|savepoint\s|set (local |session )?\w+ *=)/i

  /** SQL outside of sql/, each with its reason. */
  const REASONS: readonly (readonly [file: RegExp, statement: RegExp, reason: string])[] = [
    [/^store\/migrate\.ts$/, /./, 'runs before the schema and its named statements exist'],
    [
      /^store\/pg-store\.ts$/,
      /^(begin isolation level read committed|commit)$/,
      'a transaction around a named statement',
    ],
    [/^driver\/pool\.ts$/, /^(begin isolation level read committed|commit|rollback)$/i, 'a transaction for the caller'],
    [/^driver\/notifications\.ts$/, /^listen|pg_backend_pid|pg_listening_channels/, 'asks the session about itself'],
    [/^demo\/scratch-database\.ts$/, /^(set lock_timeout|drop schema)/, 'a schema of its own, dropped whole'],
    [/^workload\/enqueuer\.ts$/, /^(begin|commit)$/, 'stands for an application, whose transaction it is'],
    [/^diagnosis\/remedies\.ts$/, /^select pg_terminate_backend/, 'shown to an operator, never sent'],
    [/^bench\//, /^(set |drop schema|select pg_|begin|commit)/, 'a schema of its own, dropped whole'],
  ]

  const found = written.flatMap(({ path, tree }) => {
    const statements: { readonly path: string; readonly text: string }[] = []
    visit(tree, (node) => {
      const isText = ts.isStringLiteralLike(node) || ts.isTemplateHead(node)
      if (isText && STATEMENT.test(node.text)) statements.push({ path, text: node.text.trim() })
    })
    return statements
  })

  test('stands in sql/, but for what has a reason', () => {
    const without = found.filter(
      ({ path, text }) => !REASONS.some(([file, statement]) => file.test(path) && statement.test(text)),
    )
    expect(without).toEqual([])
  })

  test('and every reason is still needed', () => {
    const idle = REASONS.filter(
      ([file, statement]) => !found.some(({ path, text }) => file.test(path) && statement.test(text)),
    )
    expect(idle.map(([file]) => String(file))).toEqual([])
  })

  test('takes in nothing but the name of the schema', () => {
    const tokens = readdirSync(join(ROOT, 'sql'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.sql') && !path.startsWith('bench'))
      .flatMap((path) => {
        const text = readFileSync(join(ROOT, 'sql', path), 'utf8')
          .replaceAll(/--.*$/gm, '')
          .replaceAll(/'[^']*'/g, '')
        return [...text.matchAll(/(?<!:):(?![:=])\w+/g)].map(([token]) => token)
      })
    expect(new Set(tokens)).toEqual(new Set([':schema', ':schema_literal']))
  })

  test('relies on no name that a session’s search_path could lead elsewhere', () => {
    const unsafe: string[] = []
    for (const name of readdirSync(join(ROOT, 'sql/queries'))) {
      const text = readFileSync(join(ROOT, 'sql/queries', name), 'utf8')
        .replaceAll(/--.*$/gm, '')
        .replaceAll(/'[^']*'/g, `''`)
      for (const [, called] of text.matchAll(/(?<![\w.":])([a-z_]\w*)\(/g)) {
        if (
          ![
            'coalesce',
            'exists',
            'min',
            'max',
            'count',
            'any',
            'values',
            'in',
            'greatest',
            'least',
            'settled',
            'extended',
            'array',
          ].includes(called ?? '')
        ) {
          unsafe.push(`${name}: ${called}(`)
        }
      }
    }
    expect(unsafe).toEqual([])
  })
})

test('public names are exported one by one', () => {
  const index = files.find(({ path }) => path === 'index.ts')
  expect(files.filter(({ text }) => /^export \*/m.test(text)).map(({ path }) => relative('.', path))).toEqual([])
  const names = [...(index?.text.matchAll(/\{([^}]*)\}/g) ?? [])].flatMap(([, list]) =>
    (list ?? '').split(',').filter((name) => name.trim()),
  )
  expect(names.length).toBeGreaterThan(10)
  expect(names.length).toBeLessThanOrEqual(80)
})
