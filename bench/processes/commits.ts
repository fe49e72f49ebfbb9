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
const ALONE = 100;
const TOGETHER = 1_000;
const SENDERS = 64;

/** What a commit waits for, and how PostgreSQL calls it. */
const WAYS = [
  { name: 'the own disk', commit: 'on', standbys: '' },
  { name: 'nothing (off)', commit: 'off', standbys: '' },
  { name: 'both disks (on)', commit: 'on', standbys: '*' },
  { name: 'the replay (remote_apply)', commit: 'remote_apply', standbys: '*' },
] as const;
type Way = (typeof WAYS)[number];

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

async function choose(url: string, { commit, standbys }: Way): Promise<void> {
  await ask(
    url,
    `alter system set synchronous_commit = '${commit}'`,
    `alter system set synchronous_standby_names = '${standbys}'`,
    'select pg_reload_conf()',
  );
  const wanted = standbys === '' ? 'async' : 'sync';
  await until(`commits wait as ${commit}`, async () => {
    const [row] = await ask(
      url,
      "select current_setting('synchronous_commit') as commit, (select sync_state from pg_stat_replication) as state",
    );
    return row?.commit === commit && row.state === wanted;
  });
}

/** What synchronous commit costs: one core process, a primary and a standby on one machine. */
export async function benchCommits(
  figures: Figures,
  directory: string,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  await using cluster = await startTestCluster(createLogger('bench', 'error'), settings);
  await using processes = new Processes(directory, cluster.primaryUrl);
  const urls = [await processes.start('answer,write,deliver,index')];
  const found = WAYS.map((): { timesMs: number[]; rate: number }[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (let i = 0; i < WAYS.length; i++) {
      const index = (i + round) % WAYS.length;
      await choose(cluster.primaryUrl, WAYS[index]!);
      const { timesMs } = await postAll(urls, createBodies(ALONE, `alone-${round}-${index}`), 1);
      const bodies = createBodies(TOGETHER, `together-${round}-${index}`);
      const startMs = performance.now();
      await postAll(urls, bodies, SENDERS);
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
