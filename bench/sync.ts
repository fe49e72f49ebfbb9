import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { requestJson } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import {
  answerRanges,
  continueRanges,
  decodeAnswer,
  decodeQuestion,
  encodeRanges,
  openQuestion,
  QUESTION_RANGES_MAX,
  type Range,
  type SyncKey,
} from '@skerry/protocol';
import type { Database } from '../services/core/src/db/connect.ts';
import type { Schema } from '../services/core/src/db/schema.ts';
import { createTestDatabase } from '../services/core/src/db/testing.ts';
import { connectLine, createTestGossip } from '../services/core/src/p2p/testing.ts';
import { createHttpLink } from '../services/core/src/sync/link.ts';
import { SetIndex } from '../services/core/src/sync/set-index.ts';
import { verifyFrames } from '../services/core/src/sync/take.ts';
import { MIGRATIONS, signers } from '../services/core/src/testing.ts';
import { startNode } from '../services/core/src/testing-node.ts';
import { VerifierPool } from '../services/core/src/verify/pool.ts';
import { createDice, hexOf } from './dice.ts';
import { createBodies } from './signed-bodies.ts';

const SEED = 1;
const DIFFERENCES = [10, 1_000, 100_000] as const;
const log = createLogger('bench', 'error');

const secondsSince = (startMs: number) => (performance.now() - startMs) / 1000;
const rate = (count: number, seconds: number) => `${Math.round(count / seconds)}/s`;

function createKeys(count: number): SyncKey[] {
  const dice = createDice(SEED);
  return Array.from({ length: count }, (_, n) => ({
    time: 1_700_000_000 + Math.floor(n / 3),
    id: new Uint8Array(Buffer.from(`${hexOf(dice, n, 1, 8)}00000000`, 'hex')),
  }));
}

/** Both sides of a session, one after another, over the bytes that would be sent. */
function reconcileOnce(own: SetIndex, other: SetIndex) {
  let open: readonly Range[] = openQuestion(own);
  let [bytes, rounds, lacks] = [0, 0, 0];
  for (; open.length > 0; rounds++) {
    const question = encodeRanges(open.slice(0, QUESTION_RANGES_MAX));
    const answer = encodeRanges(answerRanges(other, decodeQuestion(question)));
    const next = continueRanges(own, decodeAnswer(answer));
    bytes += question.length + answer.length;
    lacks += next.lacks.length;
    open = [...next.open, ...open.slice(QUESTION_RANGES_MAX)];
  }
  return { bytes, rounds, lacks };
}

function benchRanges(count: number): void {
  const keys = createKeys(count);
  const heapBefore = process.memoryUsage().arrayBuffers;
  const startMs = performance.now();
  const all = SetIndex.of(keys);
  const built = secondsSince(startMs);
  const perKey = (process.memoryUsage().arrayBuffers - heapBefore) / count;
  console.log(
    `index of ${count} messages: built in ${built.toFixed(2)} s, ${perKey.toFixed(0)} bytes a message`,
  );
  for (const differences of DIFFERENCES) {
    const every = Math.floor(count / differences);
    const lacking = SetIndex.of(keys.filter((_, n) => n % every !== Math.floor(every / 2)));
    const beginMs = performance.now();
    const { bytes, rounds, lacks } = reconcileOnce(lacking, all);
    console.log(
      `${lacks} differences: ${secondsSince(beginMs).toFixed(2)} s, ${(bytes / 1e6).toFixed(3)} MB, ${rounds} rounds`,
    );
  }
}

const COPIED = ['messages', 'message_tags', 'shapes', 'totals', 'events', 'digests', 'dependencies'];

/** What `pg_dump | psql` does with the rows: COPY out and in, the indexes being there. */
async function copyRows(from: Database<Schema>, to: Database<Schema>, directory: string): Promise<number> {
  const startMs = performance.now();
  for (const table of COPIED) {
    const file = join(directory, table);
    await from.pool.query(`copy ${table} to '${file}'`);
    await to.pool.query(`truncate ${table}`);
    await to.pool.query(`copy ${table} from '${file}'`);
  }
  return secondsSince(startMs);
}

/** An empty node from a full one, each a process of its own, with every signature checked. */
async function benchTransfer(count: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const [full, empty, copied] = await Promise.all(
    [0, 1, 2].map(async () => stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }))),
  );
  const settings = {
    SKERRY_CORE_GOSSIP: 'no',
    SKERRY_CORE_RATE_LIMITS: 'no',
    SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
  };
  const source = await startNode(join(directory, 'full'), full!.url, settings);
  stack.defer(() => source.end('SIGKILL'));
  const bodies = createBodies(count, 'sync');
  let next = 0;
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (next < count) {
        const body = bodies[next++]!.toString();
        await requestJson(`${source.url}/api/v0/messages`, { method: 'POST', body });
      }
    }),
  );
  console.log(`${count} messages sent over HTTP: ${rate(count, secondsSince(startMs))}`);
  {
    await using verifier = new VerifierPool({ workers: Math.max(1, availableParallelism() - 1), log });
    const taker = {
      verifier,
      pipeline: undefined as never,
      readContentFile: async () => undefined,
      now: Date.now,
    };
    const beginMs = performance.now();
    for (let at = 0; at < count; at += 2_000) await verifyFrames(bodies.slice(at, at + 2_000), taker);
    console.log(`their signatures alone, as a node checks them: ${rate(count, secondsSince(beginMs))}`);
  }
  const beginMs = performance.now();
  const joined = await startNode(join(directory, 'empty'), empty!.url, {
    ...settings,
    SKERRY_CORE_PEERS: source.url,
  });
  stack.defer(() => joined.end('SIGKILL'));
  const link = createHttpLink(joined.url);
  const readyMs = performance.now();
  while ((await link.greet(AbortSignal.timeout(60_000))).messages < count)
    await new Promise((done) => setTimeout(done, 50));
  const syncSeconds = secondsSince(readyMs);
  await joined.end('SIGTERM');
  await source.end('SIGTERM');
  const copySeconds = await copyRows(full!, copied!, directory);
  console.log(
    `an empty node: ready in ${((readyMs - beginMs) / 1000).toFixed(1)} s, then ${rate(count, syncSeconds)}; COPY of the same rows ${rate(count, copySeconds)}; ratio ${(copySeconds / syncSeconds).toFixed(2)}`,
  );
}

const HOPS = 3;
const GOSSIPED = 300;

/** From the answer to a client to being durable three steps away. */
async function benchGossip(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const nodes = [];
  for (let seed = 1; seed <= HOPS + 1; seed++) nodes.push(await createTestGossip(stack, seed));
  await connectLine(nodes);
  const [first, last] = [nodes[0]!, nodes.at(-1)!];
  const send = (n: number) =>
    first.core.send(signers.alice, { type: 'POST', content: { type: 'note', content: { n } } });
  for (let n = 0; last.core.rooms.sync.set.index.size === 0; n++) {
    await send(n);
    await Promise.race([last.nextKept(), new Promise((done) => setTimeout(done, 500))]);
  }
  const times: number[] = [];
  let lost = 0;
  for (let n = 0; n < GOSSIPED; n++) {
    const kept = last.nextKept();
    await send(1_000 + n);
    const startMs = performance.now();
    const isHere = await Promise.race([
      kept.then(() => true),
      new Promise<boolean>((done) => setTimeout(() => done(false), 2_000)),
    ]);
    if (isHere) times.push(performance.now() - startMs);
    else lost++;
  }
  times.sort((a, b) => a - b);
  const at = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))]!.toFixed(1);
  console.log(
    `gossip over ${HOPS} hops, until durable at the last: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${times.length} of ${GOSSIPED} within 2 s, ${lost} lost`,
  );
}

/** Keeping in step: reconciliation, a node that begins with nothing, gossip. */
export async function benchSync(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { messages: { type: 'string', default: '20000' }, set: { type: 'string', default: '1000000' } },
  });
  console.log(`${availableParallelism()} cores`);
  benchRanges(Number(values.set));
  await benchGossip();
  await benchTransfer(Number(values.messages));
}
