// A core node of two processes on three PostgreSQL servers, as docs/high-availability.md sets them up, while parts of it are killed and
// frozen. Run by ../failover.ts in namespaces of its own: run.ts DIRECTORY SECONDS SEED
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { randomFrom } from '../../../services/gateway/src/tls/testing/fuzz.ts';
import { Cluster } from './cluster.ts';
import { Cores } from './cores.ts';
import { CORES, FAULTS } from './faults.ts';
import { Ledger, Stream, startWriters, Webhook, watchHealth } from './load.ts';
import { databaseUrl } from './page.ts';
import { readLog } from './rows.ts';
import { say } from './say.ts';

/** Between the end of one fault and the next. */
const CALM_MS = 4_000;

const [directory = '', seconds = '', seed = ''] = process.argv.slice(2);
const random = randomFrom(Number(seed));

const shuffled = <T>(items: readonly T[]) =>
  items
    .map((item) => ({ item, place: random(2 ** 30) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);

interface Gap {
  readonly name: string;
  readonly takesDatabase: boolean;
  /** The longest time without an acknowledgement, of the worst core process and of the best, in ms. */
  readonly worst: number;
  readonly best: number;
}

async function breakThings(cluster: Cluster, cores: Cores, ledger: Ledger): Promise<Gap[]> {
  const gaps: Gap[] = [];
  const endMs = performance.now() + Number(seconds) * 1_000;
  let line: (typeof FAULTS)[number][] = [];
  while (performance.now() < endMs) {
    // Each of them once, in any order, and again.
    if (line.length === 0) line = shuffled(FAULTS);
    const fault = line.pop()!;
    const fromMs = performance.now();
    await fault.play({ cluster, cores, random });
    await cluster.whole();
    const count = ledger.acknowledged.length;
    await until('both core processes acknowledge again', () => {
      const since = ledger.acknowledged.slice(count);
      return new Set(since.map(({ node }) => node)).size === CORES;
    });
    await delay(CALM_MS);
    const each = Array.from({ length: CORES }, (_, node) =>
      ledger.longestGap(node, fromMs, performance.now()),
    );
    const gap = { ...fault, worst: Math.max(...each), best: Math.min(...each) };
    gaps.push(gap);
    say(`${fault.name}: no acknowledgement for ${each.map((ms) => (ms / 1_000).toFixed(1)).join(' and ')} s`);
  }
  return gaps;
}

const percentile = (values: readonly number[], part: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;

function tellGaps(gaps: readonly Gap[]): void {
  for (const name of new Set(gaps.map((gap) => gap.name))) {
    const worst = gaps.filter((gap) => gap.name === name).map((gap) => gap.worst / 1_000);
    say(
      `${name}: ${worst.length} times, unavailable for ${percentile(worst, 0.5).toFixed(1)} s (p50), ${Math.max(...worst).toFixed(1)} s (max)`,
    );
  }
}

async function play(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const cluster = new Cluster(directory);
  await cluster.open();
  say('three servers are in step');
  const cores = stack.use(new Cores(directory, databaseUrl(), {}));
  for (let index = 0; index < CORES; index++) await cores.start(index);
  say('two core processes serve');
  const webhook = stack.use(await Webhook.open(cores.urlOf(0), createSigner(generatePrivateKey())));
  const cursor = String((await new CoreClient({ url: cores.urlOf(0) }).listInstances()).cursor);
  const stop = new AbortController();
  const reading = new AbortController();
  const streams = Array.from({ length: CORES }, () => new Stream());
  const followed = streams.map((stream, index) => stream.follow(cores.urlOf(index), cursor, reading.signal));
  const ledger = new Ledger();
  const written = startWriters(cores.urlOf, CORES, ledger, stop.signal);
  await until('the first acknowledgements', () => ledger.acknowledged.length > 20);
  const health = Array.from({ length: CORES }, (_, index) =>
    watchHealth(cores.urlOf(index), () => ledger.isAway, stop.signal),
  );

  const gaps = await breakThings(cluster, cores, ledger);
  stop.abort();
  await written;

  const log = (await readLog()).filter(({ seq }) => seq > Number(cursor));
  const kept = new Set(log.map(({ hash }) => hash));
  const lost = ledger.acknowledged.filter(({ hash }) => !kept.has(hash));
  const cursors = log.map(({ seq }) => seq);
  for (const stream of streams)
    await until('the streams are at the end', () => stream.cursors.at(-1) === cursors.at(-1));
  reading.abort();
  await Promise.all(followed);
  const events = log.filter(({ hash }) => hash !== null).map(({ seq }) => seq);
  await until('every event came to the webhook', () => {
    const ids = webhook.idsByCursor();
    return events.every((seq) => ids.has(seq));
  });
  const ids = webhook.idsByCursor();
  const manyIds = [...ids.values()].filter((own) => own.size > 1).length;

  tellGaps(gaps);
  for (const said of await Promise.all(health))
    say(`/health: ${[...said].map(([status, count]) => `${count} x ${status}`).join(', ')}`);
  say(`refused: ${[...ledger.refused].map(([said, count]) => `${count} x ${said}`).join(', ')}`);
  say(
    `${ledger.acknowledged.length} acknowledged, ${lost.length} lost; streams: ${streams.map((stream) => `${stream.cursors.length} of ${cursors.length} events, ${stream.misplaced} twice or out of order`).join('; ')}; webhook: ${ids.size} events in ${webhook.attempts} calls, ${manyIds} under more than one id`,
  );
  assert.deepEqual(lost, []);
  for (const stream of streams) assert.deepEqual(stream.cursors, cursors);
  assert.equal(manyIds, 0);
  const unforeseen = [...ledger.refused.keys()].filter((said) => said.startsWith('500'));
  assert.deepEqual(unforeseen, []);
}

await play();
process.exit(0);
