import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { CREDIT_CHANNEL, CREDIT_POST, PRICING_KEY, sha256Hex } from '@skerry/protocol';
import type { KyselyPlugin } from 'kysely';
import type { Entry } from '../../intake/under-way.ts';
import { foresee, withFile } from '../../intake/upload-check.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { Files } from './files.ts';

const { alice, credit } = signers;

/** A file, and its owner's message that asks to keep it. */
function fileAt(timestamp: number) {
  const bytes = randomBytes(1_000);
  const content = { item_type: 'storage', item_hash: sha256Hex(bytes) };
  const { body, itemHash } = signMessage({ type: 'STORE', content, timestamp }, alice);
  return { bytes, body: Buffer.from(body), itemHash };
}

type Sent = ReturnType<typeof fileAt>;

/** Credit for a day of so many files. */
async function give(core: TestCore, amount: number, timestamp: number) {
  const distribution = { credits: [{ address: alice.address, amount, ref: `${timestamp}` }] };
  const content = { type: CREDIT_POST.distribution, content: { distribution } };
  assert.equal(
    (await core.send(credit, { type: 'POST', channel: CREDIT_CHANNEL, content, timestamp })).status,
    200,
  );
}

/** @param meanwhile happens after a file was looked at, and before its message is kept */
function filesOf(core: TestCore, nowMs: number, meanwhile: () => Promise<unknown> = async () => {}) {
  const { db, pipeline, intake } = core.rooms;
  const client: typeof intake.client = {
    ...intake.client,
    async keep(accepted) {
      await meanwhile();
      return intake.client.keep(accepted);
    },
  };
  return new Files({
    ...{ db, pipeline, blobs: core.blobs, intake: { client }, uploadLimitBytes: 1_000_000 },
    now: () => nowMs,
  });
}

async function storeFor(core: TestCore, files: Files, { body, bytes }: Sent) {
  const blob = await files.receive(Readable.from([bytes]));
  try {
    return await files.storeFor(blob, 'text/plain', await core.rooms.intake.client.read(body));
  } finally {
    await blob.discard();
  }
}

const post = async (core: TestCore, { body }: Sent) => (await core.post('/messages', body)).status;
const statusOf = async (core: TestCore, { itemHash }: Sent) =>
  (await core.get(`/messages/${itemHash}/status`)).body.status;

test('what this node has no room for by its own rule is no verdict on a message that comes from elsewhere meanwhile', async () => {
  const nowMs = Date.now();
  const seconds = Math.floor(nowMs / 1000);
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  await give(core, 1, seconds - 500);
  const [later, earlier] = [fileAt(seconds), fileAt(seconds - 300)];
  assert.equal((await storeFor(core, filesOf(core, nowMs), later)).status, 'processed');
  const files = filesOf(core, nowMs, () => post(core, earlier));
  const refused = await storeFor(core, files, earlier);
  assert.deepEqual([refused.status, refused.reason?.code], ['rejected', 'CREDIT_INSUFFICIENT']);
  assert.notEqual(await statusOf(core, earlier), 'rejected');
  assert.equal(await post(core, earlier), 202);
  assert.equal(await statusOf(core, earlier), 'pending', 'by its own date there is credit for it');
});

test('credit that is dated later counts from then on, before a file is kept as where its message is decided', async () => {
  const nowMs = Date.now();
  const seconds = Math.floor(nowMs / 1000);
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  await give(core, 1, seconds + 300);
  const refused = await storeFor(core, filesOf(core, nowMs), fileAt(seconds));
  assert.deepEqual([refused.status, refused.reason?.code], ['rejected', 'CREDIT_INSUFFICIENT']);
  assert.deepEqual(await core.blobs.list(undefined, 10), [], 'nothing of the file is kept');
  const stored = await storeFor(core, filesOf(core, nowMs), fileAt(seconds + 400));
  assert.equal(stored.status, 'processed');
});

test('a price that is dated later counts from then on, too', async () => {
  const nowMs = Date.now();
  const seconds = Math.floor(nowMs / 1000);
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  await give(core, 1, seconds - 500);
  const content = { key: PRICING_KEY, content: { storage: { storage_mib: 1_000_000 } } };
  const priced = { type: 'AGGREGATE', channel: CREDIT_CHANNEL, content, timestamp: seconds + 300 };
  assert.equal((await core.send(credit, priced)).status, 200);
  const refused = await storeFor(core, filesOf(core, nowMs), fileAt(seconds + 400));
  assert.deepEqual([refused.status, refused.reason?.code], ['rejected', 'CREDIT_INSUFFICIENT']);
  const stored = await storeFor(core, filesOf(core, nowMs), fileAt(seconds));
  assert.equal(stored.status, 'processed');
});

test('a message that waits for its file is refused by what is known when that is written', async () => {
  const nowMs = Date.now();
  const seconds = Math.floor(nowMs / 1000);
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  const waiting = fileAt(seconds);
  assert.equal(await post(core, waiting), 202);
  const paid = filesOf(core, nowMs, () => give(core, 1, seconds - 500));
  const refused = await storeFor(core, paid, waiting);
  assert.deepEqual([refused.status, refused.reason?.code], ['rejected', 'CREDIT_INSUFFICIENT']);
  assert.equal(await statusOf(core, waiting), 'pending', 'there is credit for it by now');
  const stored = await storeFor(core, filesOf(core, nowMs), waiting);
  assert.equal(stored.status, 'processed');
});

test('a message is not taken out of force by one who looked before it was', async () => {
  const nowMs = Date.now();
  const seconds = Math.floor(nowMs / 1000);
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  const waiting = fileAt(seconds);
  assert.equal(await post(core, waiting), 202);
  const overtaken = filesOf(core, nowMs, async () => {
    await give(core, 1, seconds - 500);
    await storeFor(core, filesOf(core, nowMs), waiting);
  });
  assert.equal((await storeFor(core, overtaken, waiting)).status, 'processed');
  assert.equal(await statusOf(core, waiting), 'processed');
});

/** Counts what a room asks of the database. */
function counting({ rooms: { db } }: TestCore) {
  const counted = { statements: 0 };
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      counted.statements++;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { counted, db: db.withPlugin(plugin) };
}

test('an upload is foreseen in one statement where nothing is refused for want of credit', async () => {
  await using core = await createTestCore();
  const { counted, db } = counting(core);
  const { bytes, body } = fileAt(Math.floor(Date.now() / 1000));
  const file = { hash: sha256Hex(bytes), sizeBytes: bytes.length, contentType: 'text/plain' };
  const accepted = withFile(await core.rooms.intake.client.read(body), file);
  const { verdict } = await foresee(db, accepted, { earlier: () => [] }, Date.now);
  assert.deepEqual([verdict.status, counted.statements], ['processed', 1]);
});

test('what waits for other files of its owner is judged again once, however many there are', async () => {
  const nowMs = Date.now();
  const seconds = Math.floor(nowMs / 1000);
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  await give(core, 1, seconds - 500);
  const { counted, db } = counting(core);
  const acceptedOf = async ({ bytes, body }: Sent) =>
    withFile(await core.rooms.intake.client.read(body), {
      ...{ hash: sha256Hex(bytes), sizeBytes: bytes.length, contentType: 'text/plain' },
    });
  const others = await Promise.all([1, 2, 3].map(() => acceptedOf(fileAt(seconds))));
  // Each ends once it is waited for.
  let left: readonly Entry[] = others.map((accepted): Entry => {
    const entry = {
      accepted,
      get ended() {
        left = left.filter((one) => one !== entry);
        return Promise.resolve();
      },
    };
    return entry;
  });
  const looks: number[] = [];
  const earlier = () => {
    looks.push(left.length);
    return left;
  };
  const foreseen = await foresee(db, await acceptedOf(fileAt(seconds)), { earlier }, () => nowMs);
  assert.equal(foreseen.verdict.status, 'processed');
  assert.deepEqual([looks, counted.statements], [[3, 0], 6]);
});
