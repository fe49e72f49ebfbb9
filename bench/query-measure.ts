import type pg from 'pg';

export interface Query {
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

/** Times of one kind of request, in milliseconds. */
export class Times {
  readonly #all: number[] = [];
  get count(): number {
    return this.#all.length;
  }
  add(...times: number[]): void {
    this.#all.push(...times);
  }
  addAll(other: Times): void {
    this.#all.push(...other.#all);
  }
  at(part: number): number {
    const sorted = this.#all.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  }
  get text(): string {
    return [0.5, 0.95, 0.99].map((part) => this.at(part).toFixed(2).padStart(9)).join('');
  }
}

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
  Plans?: Plan[];
}

/** Tables of which a plan reads every row. */
export async function findScans(pool: pg.Pool, { sql, parameters }: Query): Promise<string[]> {
  const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (format json) ${sql}`, [
    ...parameters,
  ]);
  const walk = (plan: Plan): string[] => [
    ...(plan['Node Type'] === 'Seq Scan' ? [plan['Relation Name'] ?? '?'] : []),
    ...(plan.Plans ?? []).flatMap(walk),
  ];
  return walk(rows[0]!['QUERY PLAN'][0].Plan);
}

/** What is asked of the database while `body` runs, statements of transactions aside. */
export async function recordQueries(recorded: Query[], body: () => Promise<unknown>): Promise<Query[]> {
  recorded.length = 0;
  await body();
  return recorded.filter(({ sql }) => /^\s*(select|with)/i.test(sql) && !sql.includes('set_config'));
}
