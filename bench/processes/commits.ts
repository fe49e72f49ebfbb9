import assert from 'node:assert/strict';
import { startTestCluster } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import pg from 'pg';
import { createBodies } from '../data-set/signed-bodies.ts';
import { type Figures, median, tell } from '../measure/figures.ts';
import { postAll } from './load.ts';
import { Processes } from './nodes.ts';

const ROUNDS = 3;
/** One after the other. */
const ALONE = 40;
const TOGETHER = 500;
const SENDERS = 64;

/** What a commit waits for, and how PostgreSQL calls it. */
const WAYS = [
  { name: 'its own disk (local)', commit: 'local' },
  { name: 'nothing (off)', commit: 'off' },
  { name: 'both disks (on)', commit: 'on' },
  { name: 'the replay (remote_apply)', commit: 'remote_apply' },
] as const;

async function ask(url: string, ...statements: string[]): Promise<pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: pg.QueryResultRow[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}

/** A connection whose commits wait as one of them says. */
async function reach(url: string, commit: string): Promise<string> {
  const reached = `${url}?options=${encodeURIComponent(`-c synchronous_commit=${commit}`)}`;
  const [row] = await ask(reached, "select current_setting('synchronous_commit') as commit");
  assert.equal(row?.commit, commit);
  return reached;
}

/** What synchronous commit costs: a core process for each way, a primary and a standby on one machine. */
export async function benchCommits(
  figures: Figures,
  directory: string,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  await using cluster = await startTestCluster(createLogger('bench', 'error'), settings);
  await ask(
    cluster.primaryUrl,
    "alter system set synchronous_standby_names = '*'",
    'select pg_reload_conf()',
  );
  await until('the standby is waited for', async () => {
    const [row] = await ask(cluster.primaryUrl, 'select sync_state from pg_stat_replication');
    return row?.sync_state === 'sync';
  });
  await using stack = new AsyncDisposableStack();
  const urls: string[] = [];
  for (const { commit } of WAYS) {
    const processes = stack.use(new Processes(directory, await reach(cluster.primaryUrl, commit)));
    urls.push(await processes.start('answer'));
  }
  const found = WAYS.map((): { timesMs: number[]; rate: number }[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (let i = 0; i < WAYS.length; i++) {
      const index = (i + round) % WAYS.length;
      const { timesMs } = await postAll([urls[index]!], createBodies(ALONE, `alone-${round}-${index}`), 1);
      const bodies = createBodies(TOGETHER, `together-${round}-${index}`);
      const startMs = performance.now();
      await postAll([urls[index]!], bodies, SENDERS);
      const rate = TOGETHER / ((performance.now() - startMs) / 1_000);
      // The first round warms up.
      if (round > 0) found[index]!.push({ timesMs, rate });
    }
    tell(`round ${round} of ${ROUNDS}`);
  }
  figures.group('what a commit waits for, of two servers on one machine');
  WAYS.forEach(({ name }, index) => {
    const toFirst = (pick: (one: { timesMs: readonly number[]; rate: number }) => number) => ({
      to: `the same with "${WAYS[0].name}"`,
      values: found[index]!.map((one, round) => pick(one) / pick(found[0]![round]!)),
    });
    figures.addTimes(
      `${name}: a message, one after the other`,
      found[index]!.flatMap(({ timesMs }) => timesMs),
      { ratio: toFirst(({ timesMs }) => median(timesMs)) },
    );
    figures.add(
      `${name}: messages of ${SENDERS} senders`,
      '/s',
      found[index]!.map(({ rate }) => rate),
      { ratio: toFirst(({ rate }) => rate) },
    );
  });
}
