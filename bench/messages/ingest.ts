import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { createLogger } from '@skerry/kit';
import { type Database, openDatabase } from '../../packages/database/src/connect.ts';
import { migrate } from '../../packages/database/src/migrate.ts';
import { buildBatchAddon } from '../../services/core/src/intake/verify/batch/addon.ts';
import { VerifierPool } from '../../services/core/src/intake/verify/pool.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { createBodies } from '../data-set/signed-bodies.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';
import { ingest } from './intake.ts';

const MIGRATIONS = fileURLToPath(new URL('../../services/core/src/store/migrations', import.meta.url));
const MESSAGES = 20_000;
const ROUNDS = 5;

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function timed(body: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await body();
  return (performance.now() - startMs) / 1000;
}

const TABLES =
  'messages, message_tags, totals, dependencies, reconsider, events, digests, shapes restart identity';

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

/** COPY of the same message rows into the same table with the same indexes: seconds. */
async function copyRows({ pool }: Database<Schema>, directory: string): Promise<number> {
  const file = join(directory, 'rows');
  await pool.query(`copy messages to '${file}'`);
  await pool.query(`truncate ${TABLES}`);
  return timed(() => pool.query(`copy messages from '${file}'`));
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
async function costOf(database: Database<Schema>, bodies: readonly Buffer[], verifier: VerifierPool) {
  await database.pool.query(`truncate ${TABLES}`);
  const before = readProcessorSeconds([process.pid]);
  const seconds = await timed(() => ingest(database, bodies, verifier));
  return { seconds, cpu: readProcessorSeconds([process.pid]) - before };
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

/**
 * Durable, verified messages per second, against the smaller of two limits that are measured in the same rounds: native
 * signature checks on all cores, and COPY of the same rows.
 */
export async function benchIngest(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { 'database-url': { type: 'string' }, messages: { type: 'string', default: String(MESSAGES) } },
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
    console.log(`${rows[0]!.version.split(',')[0]}; ${cores} cores; ${count} messages a round`);
    const ratios: number[] = [];
    const costs: number[] = [];
    const rates: number[][] = [[], [], []];
    const shared = await shareWithServer(directory);
    for (let round = 0; round <= ROUNDS; round++) {
      const bodies = createBodies(count, `r${round}`);
      const { batched, single: alone } = await ingestBoth(
        database,
        bodies,
        { batched: verifier, single },
        round,
      );
      const ingested = count / batched.seconds;
      const copied = count / (await copyRows(database, shared));
      const checked = count / (await checkSignatures(bodies, cores));
      // The first round warms up.
      if (round === 0) continue;
      ratios.push(ingested / Math.min(checked, copied));
      costs.push(batched.cpu / alone.cpu);
      [ingested, checked, copied].forEach((rate, index) => {
        rates[index]!.push(rate);
      });
      console.log(
        `round ${round}: ingest ${ingested.toFixed(0)}/s, signature checks ${checked.toFixed(0)}/s, COPY ${copied.toFixed(0)}/s, ratio ${ratios.at(-1)!.toFixed(2)}; CPU ${((batched.cpu / count) * 1e6).toFixed(0)} us a message, ${costs.at(-1)!.toFixed(2)} of one by one`,
      );
    }
    const [ingested, checked, copied] = rates.map(median);
    console.log(
      `median: ingest ${ingested!.toFixed(0)}/s; limits: signature checks ${checked!.toFixed(0)}/s on ${cores} cores, COPY ${copied!.toFixed(0)}/s; ratio to the smaller ${median(ratios).toFixed(2)} [${Math.min(...ratios).toFixed(2)}..${Math.max(...ratios).toFixed(2)}]; CPU of all processes, batches to one by one ${median(costs).toFixed(2)} [${Math.min(...costs).toFixed(2)}..${Math.max(...costs).toFixed(2)}]`,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
