import type pg from 'pg';
import { quantile } from './figures.ts';

export interface Query {
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

/** What one kind of request costs. */
export class Times {
  readonly all: number[] = [];
  /** Of the same request a few times in a row, the best. */
  readonly quiet: number[] = [];
  /** The most pages of the database that one such request read. */
  pages = 0;

  get count(): number {
    return this.all.length;
  }
  /** The same request a few times in a row: what disturbs the machine seldom disturbs all of them. */
  add(...sames: number[]): void {
    this.all.push(...sames);
    this.quiet.push(Math.min(...sames));
  }
  addAll(other: Times): void {
    this.all.push(...other.all);
    this.quiet.push(...other.quiet);
    this.pages = Math.max(this.pages, other.pages);
  }
  at(part: number): number {
    return quantile(this.all, part);
  }
  quietAt(part: number): number {
    return quantile(this.quiet, part);
  }
  get text(): string {
    const parts = [0.5, 0.95, 0.99];
    const times = [...parts.map((part) => this.at(part)), ...parts.map((part) => this.quietAt(part))];
    return times.map((time) => time.toFixed(2).padStart(9)).join('') + String(this.pages || '').padStart(9);
  }
}

/** Columns of Times.text. */
export const HEADER = ['p50', 'p95', 'p99', 'p50*', 'p95*', 'p99*', 'pages']
  .map((name) => name.padStart(9))
  .join('');

export async function timeOf(body: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await body();
  return performance.now() - startMs;
}

/** Many at the same time; each asks again as soon as it is answered, or so often in a second. */
export async function timeReaders(
  readers: number,
  requests: number,
  ask: (index: number) => Promise<unknown>,
  perSecond = Infinity,
): Promise<Times> {
  const times = new Times();
  const pauseMs = 1000 / perSecond;
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: readers }, async (_, reader) => {
      for (let turn = 0; turn < requests; turn++) {
        // Readers do not march in step.
        const dueMs = startMs + (turn + reader / readers) * pauseMs - performance.now();
        if (pauseMs > 0 && dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
        times.add(await timeOf(() => ask(turn * readers + reader)));
      }
    }),
  );
  return times;
}

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: Plan[];
}

const pagesOf = (part: Plan) => part['Shared Hit Blocks'] + part['Shared Read Blocks'];

/**
 * Runs a query for its plan: tables of which it reads every row, and the pages that it reads.
 * @param fewPages tables of no more are not told
 */
export async function explain(
  pool: pg.Pool,
  { sql, parameters }: Query,
  fewPages = 0,
): Promise<{ scanned: string[]; pages: number }> {
  const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    `explain (analyze, buffers, timing off, format json) ${sql}`,
    [...parameters],
  );
  const { Plan: plan } = rows[0]!['QUERY PLAN'][0];
  const walk = (part: Plan): string[] => [
    ...(part['Node Type'] === 'Seq Scan' && pagesOf(part) > fewPages ? [part['Relation Name'] ?? '?'] : []),
    ...(part.Plans ?? []).flatMap(walk),
  ];
  return { scanned: walk(plan), pages: pagesOf(plan) };
}

/** What is asked of the database while `body` runs, statements of transactions aside. */
export async function recordQueries(recorded: Query[], body: () => Promise<unknown>): Promise<Query[]> {
  recorded.length = 0;
  await body();
  return recorded.filter(({ sql }) => /^\s*(select|with)/i.test(sql) && !sql.includes('set_config'));
}
