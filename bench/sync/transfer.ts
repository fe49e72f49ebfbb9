import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline as pipe } from 'node:stream/promises';
import { createLogger } from '@skerry/kit';
import type { Database } from '../../packages/database/src/connect.ts';
import { createTestDatabase, type TestDatabase } from '../../packages/database/src/testing/database.ts';
import { startTcpTestServer } from '../../packages/database/src/testing/tcp-server.ts';
import { buildBatchAddon } from '../../services/core/src/intake/verify/batch/build-addon.ts';
import { type PrepareBatches, VerifierPool } from '../../services/core/src/intake/verify/pool.ts';
import type { SyncView } from '../../services/core/src/peers/sync/view.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { MIGRATIONS } from '../../services/core/src/testing/core.ts';
import { startNode } from '../../services/core/src/testing/node.ts';
import { createBodies } from '../data-set/signed-bodies.ts';
import type { Goal } from '../measure/figure.ts';
import { type Figures, median, tell } from '../measure/figures.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';
import { type BareRows, type BareSource, readRows, runBare, startBareWorker } from '../messages/bare.ts';
import { ingest } from '../messages/intake.ts';

const log = createLogger('bench', 'error');
/** Each look is work for the node, too. */
const POLL_MS = 100;
const COMPILE_MS = 120_000;
/** More where a round is short: it has more of the machine's noise in it. */
const roundsOf = (count: number) => (count < 120_000 ? 5 : 3);
const SETTINGS = {
  SKERRY_CORE_GOSSIP: 'no',
  SKERRY_CORE_RATE_LIMITS: 'no',
  SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
};
/** What a message is written to. */
const COPIED = ['messages', 'message_tags', 'shapes', 'totals', 'events', 'digests', 'dependencies'];

/** Where what checks many signatures at once is compiled before anything is measured: a node does it once, and keeps it. */
const addonIn = (directory: string) => join(directory, 'addon');

const secondsSince = (startMs: number) => (performance.now() - startMs) / 1000;

interface Spent {
  readonly seconds: number;
  /** Of all processes that took part. */
  readonly processorSeconds: number;
}

/**
 * Measures one step after another: what passes, and what this process, its children and the database use. What the step before
 * left to write is written first, so that the next one does not pay for it.
 */
class Meter {
  readonly #roots: readonly number[];
  readonly #database: Pick<Database<Schema>, 'pool'>;

  constructor(serverPid: number, database: Pick<Database<Schema>, 'pool'>) {
    this.#roots = [process.pid, serverPid];
    this.#database = database;
  }

  async measure(body: () => Promise<unknown>): Promise<Spent> {
    await this.#database.pool.query('checkpoint');
    const startMs = performance.now();
    const used = readProcessorSeconds(this.#roots);
    await body();
    return { seconds: secondsSince(startMs), processorSeconds: readProcessorSeconds(this.#roots) - used };
  }
}

async function takeIn(database: Database<Schema>, bodies: readonly Buffer[]): Promise<void> {
  await using verifier = new VerifierPool({ workers: Math.max(1, availableParallelism() - 1), log });
  await ingest(database, bodies, verifier);
}

/** Every signature on every core, and nothing else. */
async function checkAll(
  bodies: readonly Buffer[],
  meter: Meter,
  prepareBatches?: PrepareBatches,
): Promise<Spent> {
  await using verifier = new VerifierPool({ workers: availableParallelism(), log, prepareBatches });
  const now = Math.floor(Date.now() / 1000);
  await verifier.verifyAll(bodies.slice(0, 5_000), now);
  return await meter.measure(() => verifier.verifyAll(bodies, now));
}

/** `COPY` out and in by the server itself, into tables that have their indexes, in the order in which the rows came. */
async function copyRows(from: Database<Schema>, to: Database<Schema>, directory: string): Promise<void> {
  /** As long as it takes. */
  const run = ({ pool }: Database<Schema>, ...statements: readonly string[]) =>
    pool.query(['begin', 'set local statement_timeout = 0', ...statements, 'commit'].join('; '));
  for (const table of COPIED) {
    const file = join(directory, table);
    await run(from, `copy ${table} to '${file}'`);
    await run(to, `truncate ${table}`);
    await run(to, `copy ${table} from '${file}'`);
  }
}

const SIGNED_TEXTS = `copy (select source_text, signature, sender from messages order by "time", item_hash) to stdout`;
const LINE_FEED = 0x0a;

/** The half of `pg_dump | psql` that sends: what others need of each message, in their order, from the database. */
function sendBare(url: string): BareSource & Disposable {
  const child = spawn('psql', ['-q', '-X', '-c', SIGNED_TEXTS, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks = child.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let came = 0;
  return {
    async has(count) {
      while (came < count) {
        const { value, done } = await chunks.next();
        if (done) throw new Error(`psql sent ${came} of ${count} messages`);
        for (let at = value.indexOf(LINE_FEED); at !== -1; at = value.indexOf(LINE_FEED, at + 1)) came++;
      }
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}

/** What is the same in each round. */
interface Setup {
  readonly full: TestDatabase<Schema>;
  readonly bodies: readonly Buffer[];
  readonly directory: string;
  readonly addon: string | undefined;
  readonly meter: Meter;
  create(migrations?: string): Promise<TestDatabase<Schema>>;
}

/** The least that takes messages in, beside a node: a thread that checks signatures in batches, and a database that takes ready rows. */
async function takeBare({ full, bodies, addon, meter, create }: Setup, rows: BareRows): Promise<Spent> {
  await using to = await create(MIGRATIONS);
  const worker = startBareWorker(addon);
  try {
    return await meter.measure(async () => {
      using source = sendBare(full.url);
      await runBare(to, rows, bodies, worker, source);
    });
  } finally {
    await worker.terminate();
  }
}

/** `pg_dump FROM | psql TO`. */
async function dumpInto(from: string, to: string, options: readonly string[] = []): Promise<void> {
  const dump = spawn('pg_dump', [...options, from], { stdio: ['ignore', 'pipe', 'inherit'] });
  const restore = spawn('psql', ['-q', '-X', '-v', 'ON_ERROR_STOP=1', to], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const ended = Promise.all([once(dump, 'exit'), once(restore, 'exit')]);
  await pipe(dump.stdout, restore.stdin);
  for (const [code] of await ended) if (code !== 0) throw new Error(`pg_dump | psql ended with ${code}`);
}

/** Whether the programs are here, and of the server's version: an older pg_dump refuses. */
async function hasDump(server: Pick<Database<Schema>, 'pool'>): Promise<boolean> {
  const { rows } = await server.pool.query<{ server_version: string }>('show server_version');
  const major = Number.parseInt(rows[0]!.server_version, 10);
  const child = spawn('pg_dump', ['--version'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const text = await new Promise<string>((resolve) => {
    child.once('error', () => resolve(''));
    child.stdout.once('data', (data) => resolve(String(data)));
  });
  return Number(/ (\d+)/.exec(text)?.[1] ?? 0) >= major;
}

/** What a node says of its state, until that is so. */
async function until(url: string, isSo: (view: SyncView) => boolean): Promise<void> {
  const read = async () => (await (await fetch(`${url}/api/v0/sync/status`)).json()) as SyncView;
  while (!isSo(await read())) await new Promise((done) => setTimeout(done, POLL_MS));
}

/** An empty node takes everything from a full one, each a process of its own. */
async function sync({
  full,
  bodies,
  directory,
  meter,
  create,
}: Setup): Promise<Spent & { readySeconds: number }> {
  await using empty = await create(MIGRATIONS);
  const settings = { ...SETTINGS, SKERRY_CORE_CACHE_DIR: addonIn(directory) };
  const source = await startNode(join(directory, 'full'), full.url, settings);
  // A node that starts counts its messages before it answers peers.
  await until(source.url, ({ state }) => state !== 'syncing');
  const startMs = performance.now();
  const peers = { SKERRY_CORE_PEERS: source.url };
  const joined = await startNode(await mkdtemp(join(directory, 'empty-')), empty.url, {
    ...settings,
    ...peers,
  });
  try {
    const readySeconds = secondsSince(startMs);
    const spent = await meter.measure(() => until(joined.url, ({ messages }) => messages >= bodies.length));
    return { ...spent, readySeconds };
  } finally {
    await Promise.all([joined.end('SIGTERM'), source.end('SIGTERM')]);
  }
}

async function dump({ full, meter, create }: Setup): Promise<Spent> {
  await using plain = await create();
  return await meter.measure(() => dumpInto(full.url, plain.url));
}

type Take = (name: string, ...rounds: readonly Spent[]) => void;

function takeSpent(figures: Figures, name: string, count: number, rounds: readonly Spent[]): void {
  figures.add(
    name,
    '/s',
    rounds.map(({ seconds }) => count / seconds),
  );
  figures.add(
    `${name}, CPU time of a message`,
    'µs',
    rounds.map(({ processorSeconds }) => (processorSeconds * 1e6) / count),
  );
}

/** Signatures one by one, and as a node checks them: in batches. @returns the latter, and what checks them where it could be made */
async function checkBoth(
  take: Take,
  bodies: readonly Buffer[],
  directory: string,
  meter: Meter,
): Promise<{ checked: Spent; addon: string | undefined }> {
  const cores = availableParallelism();
  take(`signatures alone, one by one, on ${cores} cores`, await checkAll(bodies, meter));
  const prepareBatches: PrepareBatches = (signal) => buildBatchAddon(addonIn(directory), signal);
  const prepared = await prepareBatches(AbortSignal.timeout(COMPILE_MS));
  const checked = await checkAll(bodies, meter, prepareBatches);
  take(`signatures alone, on ${cores} cores`, checked);
  return { checked, addon: 'path' in prepared ? prepared.path : undefined };
}

/** How the node compares; and its bounds: nothing but signatures on all cores, and what this costs after them. */
const comparing =
  (figures: Figures, take: Take, nodes: readonly Spent[], checked: Spent) =>
  (what: string, rounds: readonly Spent[], goal?: Goal) => {
    take(what, ...rounds);
    for (const [by, name] of [
      ['seconds', 'time'],
      ['processorSeconds', 'CPU time'],
    ] as const) {
      figures.add(`${what}, its ${name} to the node's`, '', ratios(rounds, nodes, by), {
        goal: by === 'seconds' ? goal : undefined,
      });
      figures.add(
        `${what}, its ${name} to signatures and then it`,
        '',
        rounds.map((spent) => spent[by] / (checked[by] + spent[by])),
      );
    }
  };

/** Of each round; where one was measured in fewer rounds, of those. */
const ratios = (these: readonly Spent[], those: readonly Spent[], by: keyof Spent = 'seconds') =>
  these.map((spent, round) => spent[by] / those[round]![by]);

/** The node, its limit and its peer in turns: what disturbs the machine, whose speed changes within minutes, disturbs all. */
async function measureInTurns(figures: Figures, take: Take, setup: Setup, checked: Spent): Promise<void> {
  const rows = await readRows(setup.full, setup.directory, 'of pages');
  const canDump = await hasDump(setup.full);
  const [nodes, bares, dumps]: [(Spent & { readySeconds: number })[], Spent[], Spent[]] = [[], [], []];
  const count = roundsOf(setup.bodies.length);
  for (let round = 1; round <= count; round++) {
    nodes.push(await sync(setup));
    if (canDump) bares.push(await takeBare(setup, rows));
    if (canDump) dumps.push(await dump(setup));
    tell(`round ${round} of ${count}`);
  }
  figures.add(
    'an empty node, until it is ready',
    's',
    nodes.map(({ readySeconds }) => readySeconds),
  );
  take('an empty node takes all', ...nodes);
  const compare = comparing(figures, take, nodes, checked);
  if (canDump) {
    take('limit: a bare program that is sent them, checks signatures and writes ready rows', ...bares);
    figures.add('the node, to the limit', '', ratios(bares, nodes), { goal: { of: 'median', least: 0.9 } });
    const bounds = ratios(dumps, bares);
    // Where 0.45 is out of reach, nine tenths of what is in reach.
    const least = Math.min(0.45, Number((0.9 * median(bounds)).toFixed(2)));
    compare('pg_dump | psql', dumps, { of: 'median', least });
    figures.add("pg_dump | psql, its time to the limit's", '', bounds);
    const tables = COPIED.flatMap((table) => ['--table', table]);
    await using indexed = await setup.create(MIGRATIONS);
    await indexed.pool.query(`truncate ${COPIED.join(', ')}`);
    compare('pg_dump | psql, tables with their indexes', [
      await setup.meter.measure(() => dumpInto(setup.full.url, indexed.url, ['--data-only', ...tables])),
    ]);
  } else figures.lack('postgresql-client of the version of the server (pg_dump, psql)');
  await using indexed = await setup.create(MIGRATIONS);
  compare('COPY by the server, tables with their indexes', [
    await setup.meter.measure(() => copyRows(setup.full, indexed, setup.directory)),
  ]);
}

/** An empty node from a full one with every signature checked, against `pg_dump | psql` of the same database. */
export async function benchTransfer(figures: Figures, count: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  // The distribution's server where there is one: its pg_dump cannot read a newer one.
  const server = stack.use(await startTcpTestServer(log));
  const create = (migrations?: string) =>
    createTestDatabase<Schema>({ migrations, serverUrl: server.url, log });
  const full = stack.use(await create(MIGRATIONS));
  const meter = new Meter(server.pid, full);
  const bodies = createBodies(count, 'sync');
  figures.group(`${count} messages to an empty node, every signature checked`);
  const take: Take = (name, ...rounds) => takeSpent(figures, name, count, rounds);
  take('taken in, one by one', await meter.measure(() => takeIn(full, bodies)));
  const { checked, addon } = await checkBoth(take, bodies, directory, meter);
  await measureInTurns(figures, take, { full, bodies, directory, addon, meter, create }, checked);
}
