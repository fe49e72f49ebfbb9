import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { createLogger } from '@skerry/kit';
import { type Database, openDatabase } from '../../packages/database/src/connect.ts';
import { migrate } from '../../packages/database/src/migrate.ts';
import { buildBatchAddon } from '../../services/core/src/intake/verify/batch/build-addon.ts';
import { VerifierPool } from '../../services/core/src/intake/verify/pool.ts';
import { NO_MESSAGES } from '../../services/core/src/store/message-set.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { createBodies } from '../data-set/signed-bodies.ts';
import { type Figures, tell } from '../measure/figures.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';
import { type BareRows, readRows, runBare, startBareWorker } from './bare.ts';
import { ingest } from './intake.ts';
import { PARTS, type Parts, readParts, secondsOf, spentOf, sumOf } from './parts.ts';

const MIGRATIONS = fileURLToPath(new URL('../../services/core/src/store/migrations', import.meta.url));
const MESSAGES = 20_000;
const ROUNDS = 5;

async function timed(body: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await body();
  return (performance.now() - startMs) / 1000;
}

const TABLES =
  'messages, message_tags, totals, dependencies, reconsider, events, set_changes, shapes restart identity';

/**
 * A database without messages: the digest of all of them has a row from the beginning. What the step before left to write is
 * written here, so that the next one does not pay for it.
 */
async function empty({ pool }: Database<Schema>): Promise<void> {
  await pool.query(`truncate ${TABLES}`);
  const { count, digest } = NO_MESSAGES;
  await pool.query('update digests set count = $1, sum = $2', [count, digest]);
  await pool.query('checkpoint');
}

/** The bare signature checks, on every core at once: seconds for all bodies. */
async function checkSignatures(bodies: readonly Buffer[], threads: number): Promise<number> {
  const share = Math.ceil(bodies.length / threads);
  const workers = Array.from({ length: threads }, (_, index) => ({
    worker: new Worker(new URL('./signature-worker.ts', import.meta.url)),
    bodies: bodies.slice(index * share, (index + 1) * share),
  }));
  const ready = workers.map(
    ({ worker, bodies: own }) =>
      new Promise<void>((resolve) => {
        worker.once('message', () => resolve());
        worker.postMessage(own);
      }),
  );
  await Promise.all(ready);
  const seconds = await timed(() =>
    Promise.all(
      workers.map(
        ({ worker }) =>
          new Promise<void>((resolve) => {
            worker.once('message', () => resolve());
            worker.postMessage('go');
          }),
      ),
    ),
  );
  await Promise.all(workers.map(({ worker }) => worker.terminate()));
  return seconds;
}

/** COPY of the same message rows into the same table with the same indexes: seconds, and those of the server's processor. */
async function copyRows(database: Database<Schema>, directory: string) {
  const { pool } = database;
  const file = join(directory, 'rows');
  await pool.query(`copy messages to '${file}'`);
  await empty(database);
  const readServer = () => readProcessorSeconds([process.pid]) - secondsOf(process.cpuUsage());
  const before = readServer();
  const seconds = await timed(() => pool.query(`copy messages from '${file}'`));
  return { seconds, server: readServer() - before };
}

/** A directory below this one that the server may write to, which may be another user. */
async function shareWithServer(directory: string): Promise<string> {
  const shared = join(directory, 'copy');
  await mkdir(shared);
  await chmod(directory, 0o755);
  await chmod(shared, 0o777);
  return shared;
}

/** Seconds, and seconds of all processors. */
async function costOf(
  database: Database<Schema>,
  bodies: readonly Buffer[],
  verifier: VerifierPool,
): Promise<Cost> {
  await empty(database);
  const before = await readParts(verifier);
  const seconds = await timed(() => ingest(database, bodies, verifier));
  return { seconds, parts: spentOf(before, await readParts(verifier)) };
}

/** The same bodies with signatures in batches and one by one, which of them first by turns. */
async function ingestBoth(
  database: Database<Schema>,
  bodies: readonly Buffer[],
  pools: Readonly<Record<'batched' | 'single', VerifierPool>>,
  round: number,
) {
  const early = round % 2 === 0 ? undefined : await costOf(database, bodies, pools.single);
  const batched = await costOf(database, bodies, pools.batched);
  return { batched, single: early ?? (await costOf(database, bodies, pools.single)) };
}

/** What the bare program uses for the same messages. */
async function costOfBare(
  database: Database<Schema>,
  rows: BareRows,
  bodies: readonly Buffer[],
  worker: Worker,
): Promise<Parts> {
  await empty(database);
  const before = await readParts({ workers: [worker] });
  await runBare(database, rows, bodies, worker);
  return spentOf(before, await readParts({ workers: [worker] }));
}

interface Cost {
  readonly seconds: number;
  readonly parts: Parts;
}

/** One round: what taking messages in cost with and without batches, and the limits' messages per second. */
interface Round {
  readonly batched: Cost;
  readonly single: Cost;
  readonly copied: { readonly seconds: number; readonly server: number };
  readonly checked: number;
  readonly bare: Readonly<Record<'batched' | 'single', Parts>>;
}

/** What the bare program uses, beside a node: what batches leave of the whole is never less than what they leave of it. */
function takeBare(figures: Figures, rounds: readonly Round[], count: number): void {
  const each = (pick: (round: Round, at: number) => number) => rounds.map(pick);
  const leaves = (batched: Parts, single: Parts) => sumOf(batched) / sumOf(single);
  const ofBare = each(({ bare }) => leaves(bare.batched, bare.single));
  figures.add(
    'limit: CPU time of a bare program for a message, signatures in batches',
    'µs',
    each(({ bare }) => (sumOf(bare.batched) / count) * 1e6),
    { ratio: { to: 'itself one by one', values: ofBare } },
  );
  figures.add(
    'CPU time of the bare program, to that of all processes',
    '',
    each(({ bare, batched }) => sumOf(bare.batched) / sumOf(batched.parts)),
  );
  figures.add(
    'CPU time that batches leave of one by one, the bare program to all processes',
    '',
    each(({ batched, single }, at) => ofBare[at]! / leaves(batched.parts, single.parts)),
    { goal: { of: 'median', least: 0.9 } },
  );
}

function takeRounds(
  figures: Figures,
  rounds: readonly Round[],
  { count, cores }: { readonly count: number; readonly cores: number },
): void {
  const each = (pick: (round: Round) => number) => rounds.map(pick);
  figures.group(`${count} messages, with ${cores} cores`);
  figures.add(
    `limit: signature checks on ${cores} cores, one by one`,
    '/s',
    each(({ checked }) => checked),
  );
  figures.add(
    'limit: COPY of the message rows',
    '/s',
    each(({ copied }) => count / copied.seconds),
  );
  figures.add(
    'ingest',
    '/s',
    each(({ batched }) => count / batched.seconds),
    {
      ratio: {
        to: 'the smaller limit',
        values: each(
          ({ batched, copied, checked }) =>
            count / batched.seconds / Math.min(checked, count / copied.seconds),
        ),
      },
      goal: { of: 'ratio', least: 0.8 },
    },
  );
  figures.add(
    'CPU time of all processes for a message, signatures in batches',
    'µs',
    each(({ batched }) => (sumOf(batched.parts) / count) * 1e6),
    {
      ratio: {
        to: 'one by one',
        values: each(({ batched, single }) => sumOf(batched.parts) / sumOf(single.parts)),
      },
    },
  );
  takeBare(figures, rounds, count);
  for (const part of Object.keys(PARTS) as (keyof Parts)[])
    figures.add(
      `of it, ${PARTS[part]}`,
      'µs',
      each(({ batched }) => (batched.parts[part] / count) * 1e6),
      part !== 'database'
        ? {}
        : {
            ratio: {
              to: 'COPY of the message rows',
              values: each(({ batched, copied }) => batched.parts.database / copied.server),
            },
          },
    );
}

/** Where what checks many signatures at once is compiled before anything is measured. */
async function buildAddon(directory: string): Promise<string> {
  const built = await buildBatchAddon(join(directory, 'addon'));
  if ('missing' in built) throw new Error(`batches cannot be built here: ${built.missing}`);
  return built.path;
}

/**
 * Durable, verified messages per second, against the smaller of two limits that are measured in the same rounds: native
 * signature checks on all cores, and COPY of the same rows.
 */
export async function benchIngest(figures: Figures, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'database-url': { type: 'string' },
      messages: { type: 'string', default: String(MESSAGES) },
      rounds: { type: 'string', default: String(ROUNDS) },
    },
  });
  const count = Number(values.messages);
  const cores = availableParallelism();
  const workers = Math.max(1, cores - 1);
  const log = createLogger('bench', 'error');
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  try {
    // One pool for all rounds, as a node has: the first round loads its threads' code.
    await using verifier = new VerifierPool({
      workers,
      log,
      prepareBatches: (signal) => buildBatchAddon(join(directory, 'addon'), signal),
    });
    await using single = new VerifierPool({ workers, log });
    await using database = await openDatabase<Schema>({
      databaseUrl: values['database-url'],
      dataDir: join(directory, 'postgres'),
      log,
    });
    await migrate({ pool: database.pool, directory: MIGRATIONS, log });
    const { rows } = await database.pool.query<{ version: string }>('select version() as version');
    tell(`${rows[0]!.version.split(',')[0]}; ${cores} cores; ${count} messages a round`);
    await using stack = new AsyncDisposableStack();
    const startBare = (addon?: string) =>
      stack.adopt(startBareWorker(addon), async (worker) => void (await worker.terminate()));
    const bare = { batched: startBare(await buildAddon(directory)), single: startBare() };
    const shared = await shareWithServer(directory);
    const rounds: Round[] = [];
    for (let round = 0; round <= Number(values.rounds); round++) {
      const bodies = createBodies(count, `r${round}`);
      const both = await ingestBoth(database, bodies, { batched: verifier, single }, round);
      const rows = await readRows(database, shared);
      const copied = await copyRows(database, shared);
      const bareOf = (worker: Worker) => costOfBare(database, rows, bodies, worker);
      const ofBare = { batched: await bareOf(bare.batched), single: await bareOf(bare.single) };
      const checked = count / (await checkSignatures(bodies, cores));
      tell(`round ${round} of ${values.rounds}: ${Math.round(count / both.batched.seconds)}/s`);
      // The first round warms up.
      if (round > 0) rounds.push({ ...both, copied, checked, bare: ofBare });
    }
    takeRounds(figures, rounds, { count, cores });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
