// The same without synchronous replication: a standby that lacks what was acknowledged becomes the primary. Run by ../failover.ts in
// namespaces of its own: asynchronous.ts DIRECTORY SECONDS
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@skerry/kit/testing/until';
import { Cluster } from './cluster.ts';
import { Cores } from './cores.ts';
import { Ledger, startWriters } from './load.ts';
import { databaseUrl } from './page.ts';
import { findMissing } from './rows.ts';
import { say } from './say.ts';

const CORES = 2;
const PEER_PORT = 4_140;
/** How far the standbys lag behind when the primary goes. */
const LAG_MS = 2_000;

const [directory = '', seconds = ''] = process.argv.slice(2);

async function readMetric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1]);
}

const readDigest = async (url: string) =>
  (await (await fetch(`${url}/api/v0/state/digest`)).json()) as {
    messages: { count: number; digest: string };
  };

/** One failover to a standby that lags. Gives what the database lacked right after it. */
async function loseSome(cluster: Cluster, ledger: Ledger): Promise<number> {
  const name = await cluster.primary();
  cluster.signal(cluster.walSenders(name), 'SIGSTOP');
  await delay(LAG_MS);
  await cluster.killServer(name);
  const told = ledger.acknowledged.map(({ hash }) => hash);
  await until(
    'another primary',
    () => cluster.primary(),
    (now) => now !== name,
  );
  const missing = await findMissing(told);
  cluster.patroni.get(name)!.start();
  await cluster.whole();
  return missing.length;
}

async function play(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const cluster = new Cluster(directory, false);
  await cluster.open();
  say('three servers are in step');
  const common = { SKERRY_CORE_SYNC_INTERVAL_SECONDS: '5' };
  const peerUrl = `http://127.0.0.1:${PEER_PORT}`;
  const cores = stack.use(new Cores(directory, databaseUrl(), { ...common, SKERRY_CORE_PEERS: peerUrl }));
  const peer = stack.use(
    new Cores(directory, undefined, { ...common, SKERRY_CORE_PEERS: cores.urlOf(0) }, PEER_PORT),
  );
  await peer.start(0);
  for (let index = 0; index < CORES; index++) await cores.start(index);
  say('two core processes and a peer serve');
  const ledger = new Ledger();
  const stop = new AbortController();
  const written = startWriters(cores.urlOf, CORES, ledger, stop.signal);
  const endMs = performance.now() + Number(seconds) * 1_000;
  let lost = 0;
  while (performance.now() < endMs) {
    const count = ledger.acknowledged.length + 200;
    await until('more acknowledgements', () => ledger.acknowledged.length > count);
    const missing = await loseSome(cluster, ledger);
    lost += missing;
    say(`a standby ${LAG_MS} ms behind is the primary: the database lacked ${missing} acknowledged messages`);
  }
  stop.abort();
  await written;
  const said = await Promise.all(
    Array.from({ length: CORES }, (_, index) => readMetric(cores.urlOf(index), 'skerry_database_losses')),
  );
  say(`skerry_database_losses: ${said.join(' and ')}`);
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
  assert.ok(
    said.some((losses) => losses > 0),
    'the node noticed',
  );
}

await play();
process.exit(0);
