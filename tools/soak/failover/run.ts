// A core node of four processes on three PostgreSQL servers, as docs/high-availability.md sets them up, while parts of it are killed and
// frozen. Run by ../failover.ts in namespaces of its own: run.ts DIRECTORY SECONDS SEED [ONLY]
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { randomFrom } from '../../../services/gateway/src/tls/testing/fuzz.ts';
import { assertEach } from '../run/counts.ts';
import type { Archive } from './backup.ts';
import type { Cluster } from './cluster.ts';
import type { Cores } from './cores.ts';
import { FAULTS, type Fault } from './faults.ts';
import { Files, findLost, findUnrejected, storeFiles, storeParts } from './files.ts';
import { type Gap, tellGaps } from './gaps.ts';
import { Leads } from './leads.ts';
import { Ledger, Stream, startWriters, Webhook, watchHealth } from './load.ts';
import { readLosses } from './losses.ts';
import { ANSWERING, openNode } from './node.ts';
import { findMissing, readLog } from './rows.ts';
import { say } from './say.ts';
import { playOn } from './scenario.ts';

/** Between the end of one fault and the next. */
const CALM_MS = 4_000;

const [directory = '', seconds = '', seed = '', only = ''] = process.argv.slice(2);
const random = randomFrom(Number(seed));
const faults = FAULTS.filter(({ name }) => name.includes(only));

const shuffled = <T>(items: readonly T[]) =>
  items
    .map((item) => ({ item, place: random(2 ** 30) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);

interface Parts {
  readonly cluster: Cluster;
  readonly cores: Cores;
  readonly leads: Leads;
  readonly ledger: Ledger;
}

/** Whether every process that answers acknowledged something after so many. */
const isAcknowledgedByAll = ({ acknowledged }: Ledger, count: number): boolean =>
  new Set(acknowledged.slice(count).map(({ node }) => node)).size === ANSWERING.length;

async function breakThings({ cluster, cores, leads, ledger }: Parts): Promise<Gap[]> {
  assert.ok(faults.length > 0, `no fault is called ${only}`);
  const gaps: Gap[] = [];
  const endMs = performance.now() + Number(seconds) * 1_000;
  let line: Fault[] = [];
  while (performance.now() < endMs) {
    // Each of them once, in any order, and again.
    if (line.length === 0) line = shuffled(faults);
    const fault = line.pop()!;
    const fromMs = performance.now();
    say(`${fault.name}: begins`);
    await fault.play({ cluster, cores, leads, random });
    await cluster.whole();
    const count = ledger.acknowledged.length;
    await until('both processes that answer acknowledge again', () => isAcknowledgedByAll(ledger, count));
    await leads.find();
    await delay(CALM_MS);
    const toMs = performance.now();
    const gap = {
      ...fault,
      each: ANSWERING.map((node) => ledger.longestGap(node, fromMs, toMs)),
      lead: leads.longestWithout(fromMs, toMs),
    };
    gaps.push(gap);
    const times = gap.each.map((ms, node) => `${(ms / 1_000).toFixed(1)} s by ${cores.nameOf(node)}`);
    say(
      `${fault.name}: no acknowledgement for ${times.join(', ')}; nobody led for ${(gap.lead / 1_000).toFixed(1)} s`,
    );
  }
  return gaps;
}

/** Everything that was acknowledged is there, and was told as it should be. Gives what it found out. */
async function compare(
  { cores, ledger, cursor }: { cores: Cores; ledger: Ledger; cursor: string },
  { streams, webhook, files }: { streams: readonly Stream[]; webhook: Webhook; files: Files },
) {
  const lostLacking: string[] = [];
  for (const index of ANSWERING) {
    const { lost } = await until(
      'whoever leads rejects what lacks its file',
      () => findUnrejected(cores.urlOf(index), files.lacking),
      ({ waiting }) => waiting.length === 0,
    );
    lostLacking.push(...lost);
  }
  const log = (await readLog()).filter(({ seq }) => seq > Number(cursor));
  const kept = new Set(log.map(({ hash }) => hash));
  const lost = ledger.acknowledged.filter(({ hash }) => !kept.has(hash)).map(({ hash }) => hash);
  const cursors = log.map(({ seq }) => seq);
  for (const stream of streams)
    await until('the streams are at the end', () => stream.cursors.at(-1) === cursors.at(-1));
  const events = log.filter(({ hash }) => hash !== null).map(({ seq }) => seq);
  await until('every event came to the webhook', () => {
    const ids = webhook.idsByCursor();
    return events.every((seq) => ids.has(seq));
  });
  const lostFiles = await Promise.all(ANSWERING.map((index) => findLost(cores.urlOf(index), files.kept)));
  const ids = webhook.idsByCursor();
  const manyIds = [...ids.values()].filter((own) => own.size > 1).length;
  const ofStreams = streams.map(
    (stream) =>
      `${stream.cursors.length} of ${cursors.length} events, ${stream.misplaced} twice or out of order`,
  );
  say(
    `${ledger.acknowledged.length} acknowledged, ${lost.length} lost; streams: ${ofStreams.join('; ')}; webhook: ${ids.size} events in ${webhook.attempts} calls, ${manyIds} under more than one id`,
  );
  say(
    `${files.kept.length} files acknowledged, ${files.parted} of them in parts, ${lostFiles.flat().length} lost; ${files.lacking.length} messages without a file, ${lostLacking.length} lost, the others rejected`,
  );
  const noticed = [...(await readLosses(cores))].filter(([, count]) => count > 0).map(([name]) => name);
  say(`the database has lost something: ${noticed.join(', ') || 'no process'} says so`);
  return { lost: [...lost, ...lostLacking], cursors, lostFiles: lostFiles.flat(), manyIds, noticed };
}

/** All three servers are lost; everything that was acknowledged comes back from the archive, and the node goes on. */
async function loseServers(
  { cluster, cores, ledger }: Omit<Parts, 'leads'>,
  archive: Archive,
): Promise<void> {
  const before = (await readLog()).map(({ seq }) => seq);
  await archive.keepAll();
  await cluster.lose();
  say('all three servers are lost, with their disks');
  const fromMs = performance.now();
  await archive.restore();
  const seconds = ((performance.now() - fromMs) / 1_000).toFixed(1);
  const missing = await findMissing(ledger.acknowledged.map(({ hash }) => hash));
  const after = new Set((await readLog()).map(({ seq }) => seq));
  const gone = before.filter((seq) => !after.has(seq));
  say(
    `restored in ${seconds} s; of ${ledger.acknowledged.length} acknowledged ${missing.length} are missing, of ${before.length} events ${gone.length}`,
  );
  assert.deepEqual([missing, gone], [[], []], 'what the archive has is restored');
  const stop = new AbortController();
  const count = ledger.acknowledged.length;
  const written = startWriters(cores.urlOf, ANSWERING.length, ledger, stop.signal);
  await until('both processes that answer acknowledge again', () => isAcknowledgedByAll(ledger, count));
  stop.abort();
  await written;
  const next = (await readLog()).find(({ seq }) => !after.has(seq));
  assert.ok(next && next.seq > before.at(-1)!, 'events go on above every number that readers remember');
}

async function play(cluster: Cluster, stack: AsyncDisposableStack, archive: Archive): Promise<void> {
  const cores = await openNode(directory, stack);
  say('two core processes answer, two are candidates for writing');
  const webhook = stack.use(await Webhook.open(cores.urlOf(0), createSigner(generatePrivateKey())));
  const cursor = String((await new CoreClient({ url: cores.urlOf(0) }).listInstances()).cursor);
  const stop = new AbortController();
  const reading = new AbortController();
  const streams = ANSWERING.map(() => new Stream());
  const followed = streams.map((stream, index) => stream.follow(cores.urlOf(index), cursor, reading.signal));
  const ledger = new Ledger();
  const leads = new Leads();
  const files = new Files();
  const storing = { files, ledger, signal: stop.signal };
  const written = [
    startWriters(cores.urlOf, ANSWERING.length, ledger, stop.signal),
    ...ANSWERING.map((index) => storeFiles(cores.urlOf(index), storing)),
    storeParts(ANSWERING.map(cores.urlOf), storing),
    leads.watch(cores, stop.signal),
  ];
  await until('the first acknowledgements', () => ledger.acknowledged.length > 20);
  await archive.save();
  say('the database is saved');
  const health = ANSWERING.map((index) => watchHealth(cores.urlOf(index), () => ledger.isAway, stop.signal));

  const gaps = await breakThings({ cluster, cores, leads, ledger });
  stop.abort();
  await Promise.all(written);
  tellGaps(gaps, ANSWERING.map(cores.nameOf));
  for (const said of await Promise.all(health))
    say(`/health: ${[...said].map(([status, count]) => `${count} x ${status}`).join(', ')}`);
  say(`refused: ${[...ledger.refused].map(([said, count]) => `${count} x ${said}`).join(', ')}`);

  const found = await compare({ cores, ledger, cursor }, { streams, webhook, files });
  reading.abort();
  await Promise.all(followed);
  assertEach({
    faults: gaps.length,
    files: files.kept.length,
    files_in_parts: files.parted,
    messages_without_a_file: files.lacking.length,
    events: found.cursors.length,
    calls_of_the_webhook: webhook.attempts,
  });
  assert.equal(found.lost.length, 0, 'messages that were acknowledged are lost');
  assert.deepEqual(found.noticed, [], 'the database has lost nothing that a process had followed');
  for (const stream of streams)
    assert.ok(
      stream.cursors.length === found.cursors.length &&
        stream.cursors.every((one, place) => one === found.cursors[place]),
      'the streams have every event in order and once',
    );
  assert.equal(found.manyIds, 0, 'a webhook gets an event under one id');
  assert.deepEqual(found.lostFiles, [], 'files that were acknowledged are lost');
  const unforeseen = [...ledger.refused.keys()].filter((said) => /500|INTERNAL/.test(said));
  assert.deepEqual(unforeseen, []);
  await loseServers({ cluster, cores, ledger }, archive);
}

await playOn(directory, true, play);
