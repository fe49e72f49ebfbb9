import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { call, type MessageDraft, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { NETWORK_CHANNEL, sha256Hex } from '@skerry/protocol';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { STATE_API, type StateDigestView } from '@skerry/protocol/api/core/state';
import { STORAGE_API } from '@skerry/protocol/api/core/storage';
import type { Schema } from '../../../store/schema.ts';
import { instanceContent, MIGRATIONS, signers } from '../../../testing/core.ts';
import { type NodeProcess, startNode } from '../../../testing/node.ts';
import { createWire, type Wire } from './wire.ts';

/** Requests under way at once. */
const SENDERS = 16;
const POLL_MS = 100;

interface Place {
  readonly name: string;
  node: NodeProcess | undefined;
  start(): Promise<void>;
}

export interface ConvergenceOptions {
  readonly messages: number;
  readonly filesEvery: number;
  readonly partitionMs: number;
  /** For all nodes to agree, after everything is mended. */
  readonly agreeWithinMs: number;
}

const { alice, bob } = signers;

/** The n-th message: notes, elements, changes of what came before, things taken back. */
function draftOf(n: number, sent: readonly string[]): { draft: MessageDraft; signer: typeof alice } {
  const signer = n % 2 === 0 ? alice : bob;
  // Of the same signer, since n - 4 is as even as n.
  const earlier = sent[n - 4];
  const draft = (type: string, content: unknown) => ({
    draft: { type, content, channel: 'converge' },
    signer,
  });
  if (n % 500 === 10) return draft('INSTANCE', { ...instanceContent, name: `m${n}` });
  if (n % 10 === 3) return draft('AGGREGATE', { key: `k${n % 7}`, content: { [`f${n % 11}`]: n } });
  if (n % 50 === 8 && earlier) return draft('POST', { type: 'amend', ref: earlier, content: { amended: n } });
  if (n % 50 === 16 && earlier) return draft('FORGET', { hashes: [earlier] });
  return draft('POST', { type: 'note', content: { n }, tags: [`t${n % 5}`] });
}

async function upload(url: string, text: string): Promise<void> {
  const form = new FormData();
  form.set('address', alice.address);
  form.set('signature', alice.sign(sha256Hex(text)));
  form.set('file', new Blob([text]), 'a');
  await call(url, STORAGE_API.storeFile, { body: form });
}

const digestOf = ({ node }: Place) => call(node!.url, STATE_API.getStateDigest, {});

/** Waits until all have the same digest. */
async function agree(
  places: readonly Place[],
  withinMs: number,
): Promise<{ digest: StateDigestView; elapsedMs: number }> {
  const startMs = performance.now();
  for (;;) {
    const digests = await Promise.all(places.map(digestOf));
    const texts = digests.map(({ messages, derived }) => JSON.stringify({ messages, derived }));
    if (texts.every((text) => text === texts[0]))
      return { digest: digests[0]!, elapsedMs: performance.now() - startMs };
    if (performance.now() - startMs > withinMs)
      assert.deepEqual(
        texts,
        texts.map(() => texts[0]),
        'the nodes agree',
      );
    await delay(POLL_MS);
  }
}

/** Messages in which nodes tell of themselves. */
const listAnnounced = ({ node }: Place) =>
  call(node!.url, MESSAGES_API.listMessages, { query: { channels: NETWORK_CHANNEL.core, limit: 100 } });

/** Three core nodes as processes, each with a database of its own, and a wire between any two. */
async function createPlaces(stack: AsyncDisposableStack, count: number) {
  const log = createLogger('test', 'silent');
  const places: Place[] = [];
  const wires = new Map<string, Wire>();
  for (let at = 0; at < count; at++) {
    const home = await mkdtemp(join(tmpdir(), 'skerry-converge-'));
    stack.defer(() => rm(home, { recursive: true, force: true }));
    const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
    const peers: string[] = [];
    for (let other = 0; other < count; other++) {
      if (other === at) continue;
      const wire = stack.use(await createWire(() => places[other]?.node?.url));
      wires.set(`${at} ${other}`, wire);
      peers.push(wire.url);
    }
    const place: Place = {
      name: `node ${at}`,
      node: undefined,
      async start() {
        place.node = await startNode(home, database.url, {
          SKERRY_CORE_PEERS: peers.join(','),
          SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
          SKERRY_CORE_RATE_LIMITS: 'no',
          // It would go around the wires.
          SKERRY_CORE_GOSSIP: 'no',
        });
      },
    };
    stack.defer(() => place.node?.end('SIGKILL'));
    places.push(place);
  }
  /** Takes one node out of the network, or lets it back in. */
  const partition = (at: number, isCut: boolean) => {
    for (const [name, wire] of wires)
      if (name.split(' ').includes(String(at))) isCut ? wire.cut() : wire.mend();
  };
  return { places, partition };
}

/** Sends to whichever node answers; an acknowledged message counts, another one is sent again elsewhere. */
async function sendAll(
  places: readonly Place[],
  options: ConvergenceOptions,
  onSent: (count: number) => void,
) {
  const sent: string[] = [];
  let next = 0;
  const sendOne = async (n: number): Promise<void> => {
    const { draft, signer } = draftOf(n, sent);
    const { body, itemHash } = signMessage({ ...draft, timestamp: 1_700_000_000 + n }, signer);
    for (let attempt = 0; ; attempt++) {
      const place = places[(Math.imul(n + attempt, 2_654_435_761) >>> 8) % places.length]!;
      try {
        if (!place.node) throw new Error('it is down');
        await call(place.node.url, MESSAGES_API.submitMessage, { body });
        if (n % options.filesEvery === 0) await upload(place.node.url, `file ${n}`);
        sent[n] = itemHash;
        return;
      } catch (error) {
        assert.ok(attempt < 200, `message ${n}: ${(error as Error).message}`);
        await delay(20);
      }
    }
  };
  const send = async () => {
    while (next < options.messages) {
      await sendOne(next++);
      onSent(next);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, send));
  return sent;
}

/** Messages to random nodes while one is killed and another is cut off: in the end all have the same, and all of it. */
export async function converge(t: TestContext, options: ConvergenceOptions): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { places, partition } = await createPlaces(stack, 3);
  await Promise.all(places.map((place) => place.start()));
  const killed = places[1]!;
  const troubles: Promise<void>[] = [];
  const at = (share: number) => Math.floor(options.messages * share);
  const startMs = performance.now();
  const sent = await sendAll(places, options, (count) => {
    if (count === at(0.2)) {
      partition(2, true);
      troubles.push(delay(options.partitionMs).then(() => partition(2, false)));
    }
    if (count === at(0.4)) {
      const { node } = killed;
      killed.node = undefined;
      troubles.push(node!.end('SIGKILL'));
    }
    if (count === at(0.7)) troubles.push(killed.start());
  });
  const sentMs = performance.now() - startMs;
  await Promise.all(troubles);
  const { digest, elapsedMs } = await agree(places, options.agreeWithinMs);
  const perSecond = (count: number, milliseconds: number) => Math.round((count * 1000) / milliseconds);
  t.diagnostic(
    `${options.messages} messages sent in ${(sentMs / 1000).toFixed(1)} s (${perSecond(options.messages, sentMs)}/s); the same digest ${(elapsedMs / 1000).toFixed(1)} s later: ${digest.messages.digest.slice(0, 16)}, ${digest.messages.count} messages`,
  );
  const uploads = Math.ceil(options.messages / options.filesEvery);
  const { total: announced } = (await listAnnounced(places[0]!)).pagination;
  assert.equal(
    digest.messages.count,
    new Set(sent).size + uploads + announced,
    'every acknowledged message is there',
  );
  await joinEmpty(t, stack, places, options);
}

/** A node with nothing joins, and reaches the digest. */
async function joinEmpty(
  t: TestContext,
  stack: AsyncDisposableStack,
  places: readonly Place[],
  options: ConvergenceOptions,
): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'skerry-converge-'));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const log = createLogger('test', 'silent');
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const place: Place = { name: 'node 3', node: undefined, start: async () => {} };
  stack.defer(() => place.node?.end('SIGKILL'));
  const startMs = performance.now();
  place.node = await startNode(home, database.url, {
    SKERRY_CORE_PEERS: places.map(({ node }) => node!.url).join(','),
    SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
  });
  const readyMs = performance.now();
  const { digest } = await agree([places[0]!, place], options.agreeWithinMs);
  const endMs = performance.now();
  t.diagnostic(
    `a fourth node, empty: ${digest.messages.count} messages in ${((endMs - readyMs) / 1000).toFixed(1)} s after it was ready (${((readyMs - startMs) / 1000).toFixed(1)} s), ${Math.round((digest.messages.count * 1000) / (endMs - readyMs))}/s`,
  );
}
