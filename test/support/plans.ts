import type pg from 'pg'
import { assert } from '../../src/assert.js'
import type { TestSchema } from './database.js'

/** A node of a plan as `EXPLAIN (ANALYZE, FORMAT JSON)` gives it. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Shared Hit Blocks'?: number
  readonly 'Shared Read Blocks'?: number
  readonly Plans?: readonly PlanNode[]
}

/** One statement that a function ran. */
export interface StatementPlan {
  readonly text: string
  readonly nodes: readonly PlanNode[]
}

/**
 * Sees the plans of the statements inside functions, with the rows they really touched: the server's auto_explain
 * sends them to this session as notices. Needs a superuser, as the embedded server's user is.
 */
export class PlanWatcher {
  readonly client: pg.Client
  readonly #found: StatementPlan[] = []

  private constructor(client: pg.Client) {
    this.client = client
    client.on('notice', ({ message }) => {
      const [, json] = /^duration: .*?plan:\n(\{.*)/s.exec(message ?? '') ?? []
      if (json === undefined) return
      const plan = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode }
      this.#found.push({ text: plan['Query Text'], nodes: flatten(plan.Plan) })
    })
  }

  static async on(schema: TestSchema): Promise<PlanWatcher> {
    const watcher = new PlanWatcher(await schema.connect())
    await watcher.client.query("load 'auto_explain'")
    for (const [name, value] of Object.entries(SETTINGS)) await watcher.client.query(`set ${name} = ${value}`)
    return watcher
  }

  /** Runs a call and answers with the plans of everything in it. */
  async watch(text: string, values: readonly unknown[] = []): Promise<readonly StatementPlan[]> {
    this.#found.length = 0
    await this.client.query(text, [...values])
    assert(this.#found.length > 0, 'auto_explain sends at least the plan of the call itself')
    return [...this.#found]
  }
}

const SETTINGS = {
  'auto_explain.log_min_duration': 0,
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_format': 'json',
  client_min_messages: 'log',
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}

/** Tables that were read from end to end. */
export function sequentialScans(plans: readonly StatementPlan[]): string[] {
  return nodesOf(plans).flatMap((node) => (node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? ''] : []))
}

/** The most rows that any node handled, kept or not, over all its loops: what the work of the statement grows with. */
export function mostRows(plans: readonly StatementPlan[]): number {
  return Math.max(...nodesOf(plans).map(rowsOf))
}

/** The statement and the node that handled the most rows, for the text of a failure. */
export function heaviest(plans: readonly StatementPlan[]): string {
  const all = plans.flatMap(({ text, nodes }) => nodes.map((node) => ({ text, node })))
  const [first] = all.sort((a, b) => rowsOf(b.node) - rowsOf(a.node))
  if (!first) return 'no plan'
  const { node, text } = first
  const where = node['Index Name'] ?? node['Relation Name'] ?? ''
  return `${node['Node Type']} ${where} handled ${rowsOf(node)} rows in: ${text.replaceAll(/\s+/g, ' ').slice(0, 400)}`
}

function rowsOf(node: PlanNode): number {
  return (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
}

function nodesOf(plans: readonly StatementPlan[]): PlanNode[] {
  return plans.flatMap(({ nodes }) => nodes)
}
