// The same without synchronous replication: a standby that lacks what was acknowledged becomes the primary. Run by ../failover.ts in
// namespaces of its own: asynchronous.ts DIRECTORY SECONDS
import assert from 'node:assert/strict';
import { until } from '@skerry/kit/testing/until';
import type { Cluster } from './cluster.ts';
import { Cores } from './cores.ts';
import { Ledger, startWriters } from './load.ts';
import { readLosses } from './losses.ts';
import { ANSWERING, openNode } from './node.ts';
import type { Name } from './page.ts';
import { findMissing, readLogEnd } from './rows.ts';
import { say } from './say.ts';
import { playOn } from './scenario.ts';

const PEER_PORT = 4_140;
/** How far the standbys lag behind when the primary goes: by more than a megabyte (maximum_lag_on_failover) Patroni promotes none. */
const LAG_KIB = 256;
/** After this every process has left a primary that was replaced. */
const LEAVING_MS = 15_000;
const LOOK_MS = 250;

const [directory = '', seconds = ''] = process.argv.slice(2);

const readDigest = async (url: string) =>
  (await (await fetch(`${url}/api/v0/state/digest`)).json()) as {
    messages: { count: number; digest: string };
  };

/** Ways in which acknowledged messages get lost. Each resolves when the primary is to be replaced. */
const WAYS = [
  {
    name: `the primary is killed while the standbys are ${LAG_KIB} KiB behind`,
    play: async (cluster: Cluster, name: Name) => {
      cluster.signal(cluster.walSenders(name), 'SIGSTOP');
      const from = await readLogEnd(name);
      const isFar = (end: number) => end - from > LAG_KIB * 1024;
      await until('the standbys are behind', () => readLogEnd(name), isFar, { everyMs: LOOK_MS });
      await cluster.killServer(name);
    },
  },
  {
    name: 'Patroni is killed, and the primary goes on beside a new one',
    play: (cluster: Cluster, name: Name) => cluster.patroni.get(name)!.kill(),
  },
];

interface Loss {
  /** What the new primary lacked when the core processes used it. */
  readonly messages: number;
  /** Names of the processes that say so: one that had not yet followed what is gone has nothing to say. */
  readonly noticed: readonly string[];
}

/** One failover. */
async function loseSome(
  { play }: (typeof WAYS)[number],
  cluster: Cluster,
  cores: Cores,
  ledger: Ledger,
): Promise<Loss> {
  const name = await cluster.primary();
  const before = await readLosses(cores);
  const findNoticed = async () =>
    [...(await readLosses(cores))].flatMap(([process, count]) =>
      count > before.get(process)! ? [process] : [],
    );
  await play(cluster, name);
  const next = await until(
    'another primary',
    () => cluster.primary(),
    (now) => now !== name,
  );
  const endMs = performance.now() + LEAVING_MS;
  let messages = 0;
  await until(
    'the node noticed what it lost, or lost nothing',
    async () => {
      const hashes = ledger.acknowledged.map(({ hash }) => hash);
      messages = Math.max(messages, (await findMissing(hashes, next)).length);
      if (messages === 0) return performance.now() > endMs;
      return (await findNoticed()).length > 0;
    },
    Boolean,
    { everyMs: LOOK_MS },
  );
  cluster.patroni.get(name)!.start();
  await cluster.whole();
  return { messages, noticed: await findNoticed() };
}

async function play(cluster: Cluster, stack: AsyncDisposableStack): Promise<void> {
  const common = { SKERRY_CORE_SYNC_INTERVAL_SECONDS: '5' };
  const peerUrl = `http://127.0.0.1:${PEER_PORT}`;
  const cores = await openNode(directory, stack, { ...common, SKERRY_CORE_PEERS: peerUrl });
  const settings = { ...common, SKERRY_CORE_PEERS: cores.urlOf(0) };
  const peer = stack.use(new Cores(directory, PEER_PORT, [{ name: 'peer', settings }]));
  await peer.open();
  say('two core processes answer, two are candidates for writing; a peer serves');
  const ledger = new Ledger();
  const stop = new AbortController();
  const written = startWriters(cores.urlOf, ANSWERING.length, ledger, stop.signal);
  const endMs = performance.now() + Number(seconds) * 1_000;
  let lost = 0;
  for (let n = 0; performance.now() < endMs; n++) {
    const way = WAYS[n % WAYS.length]!;
    const count = ledger.acknowledged.length + 200;
    await until('more acknowledgements', () => ledger.acknowledged.length > count);
    const { messages, noticed } = await loseSome(way, cluster, cores, ledger);
    lost += messages;
    say(
      `${way.name}: the new primary lacked ${messages} acknowledged messages; noticed by ${noticed.join(', ') || 'none'}`,
    );
  }
  stop.abort();
  await written;
  const hashes = ledger.acknowledged.map(({ hash }) => hash);
  await until('what was lost came back', async () => (await findMissing(hashes)).length === 0);
  await until('equal digests', async () => {
    const [own, others] = await Promise.all([readDigest(cores.urlOf(1)), readDigest(peerUrl)]);
    return own.messages.digest === others.messages.digest;
  });
  say(
    `${hashes.length} acknowledged, ${lost} lost by the database, all of them back from the peer; equal digests`,
  );
  assert.ok(lost > 0, 'the standbys lagged');
}

await playOn(directory, false, play);
