import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, sha256Hex, verifySubmission } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import { coreConfig } from './config.ts';
import { acceptMessage } from './intake/accept.ts';
import { Leading } from './leading.ts';
import { Dag } from './store/ipfs/testing/dags.ts';
import type { Schema } from './store/schema.ts';
import { createTestCore, MIGRATIONS, signers, type TestCore } from './testing/core.ts';

const TIMESTAMP = 1_700_000_000;
/** Messages that come one after another, and how many of them come before anything begins where that waits for the last one. */
const MESSAGES = 500;

const post = (nonce: number) => {
  const draft = { type: 'POST', content: { type: 'note', content: nonce } };
  const { body } = signMessage(
    { ...draft, timestamp: TIMESTAMP, nonce: `${nonce}` } as MessageDraft,
    signers.alice,
  );
  return acceptMessage(verifySubmission(Buffer.from(body), TIMESTAMP));
};

const HOUR_MS = 3_600_000;

test('what messages were rejected for is brought once it can be had: from a peer, by IPFS and from the own store', async () => {
  const log = createLogger('core', 'fatal');
  await using holder = await createTestCore();
  const [far, near, dag] = [randomBytes(1_000), randomBytes(1_000), new Dag()];
  const { files } = holder.rooms;
  await files.storeUnpinned(await files.receive(Readable.from([far])), 'text/plain');
  const cid = dag.node(new UnixFS({ type: 'file', data: randomBytes(100) })).toString();
  let [nowMs, isThere] = [Date.now(), false];
  const blockSource = {
    fetch: async () => {
      if (!isThere) throw new AppError('CID_NOT_FOUND', 'nobody has it');
      return dag.blocks[0]!;
    },
  };
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  await using core = await createTestCore({ database, blockSource, now: () => nowMs });
  const { rooms, blobs } = core;
  const send = async (item_type: string, item_hash: string): Promise<string> => {
    const draft = { type: 'STORE', content: { item_type, item_hash } };
    return (await core.send(signers.alice, draft)).body.item_hash;
  };
  const sent = [
    await send('storage', sha256Hex(far)),
    await send('storage', sha256Hex(near)),
    await send('ipfs', cid),
  ];
  const statuses = async () =>
    Promise.all(sent.map(async (hash) => (await core.get(`/messages/${hash}/status`)).body.status));
  nowMs += HOUR_MS;
  await rooms.pipeline.expire();
  await rooms.pipeline.idle();
  assert.deepEqual(await statuses(), ['rejected', 'rejected', 'rejected']);
  // However late the last try was: it is due again.
  nowMs += HOUR_MS;
  await until(
    'nothing is waited for',
    () => rooms.db.selectFrom('wanted_files').select('hash').execute(),
    (rows) => rows.length === 0,
  );
  isThere = true;
  // The database was restored to before this one came.
  await (await blobs.receive(Readable.from([near]), near.length)).keep();
  const leading = new Leading({
    ...{ rooms, blobs, pool: database.pool, anchors: [], log },
    config: readConfig(coreConfig, { SKERRY_CORE_PEERS: await holder.listen() }),
    isServing: () => true,
  });
  await using _work = await leading.begin(new AbortController().signal);
  await until('all are in force', statuses, (all) => all.every((status) => status === 'processed'));
});

// 2 CPU seconds.
test('whoever comes to lead while messages keep coming does what it leads, and decides what was left in line', async () => {
  const log = createLogger('core', 'fatal');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  await using core = await createTestCore({ database });
  const { rooms, blobs } = core;
  const { db, events, pipeline } = rooms;
  const sending: Promise<unknown>[] = [];
  let isOver = false;
  const sendNext = () => {
    if (!isOver && sending.length < MESSAGES) sending.push(pipeline.submit(post(sending.length)));
  };
  const { wake } = events;
  // When a batch is through there is one more message already, as in a crowd.
  events.wake = () => {
    wake();
    sendNext();
  };
  const leading = new Leading({
    ...{ rooms, blobs, pool: database.pool, anchors: [], log },
    config: readConfig(coreConfig, {}),
    isServing: () => true,
  });
  sendNext();
  await sending[0];
  const left = post(0).message.itemHash;
  await db.insertInto('reconsider').values({ item_hash: left }).execute();
  await using _work = await leading.begin(new AbortController().signal);
  assert.ok(sending.length < MESSAGES, 'it began before the last message came');
  isOver = true;
  await Promise.all(sending);
  await pipeline.idle();
  assert.deepEqual(await db.selectFrom('reconsider').selectAll().execute(), []);
});

test('whom the process that leads trusts by its settings counts, not whoever has started last', async () => {
  const log = createLogger('core', 'fatal');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const trusting = (...schedulers: string[]) => ({
    schedulers,
    ...{ scoringPublishers: [], creditPublishers: [], knownCoreNodes: [], creditEnforcement: false },
  });
  const trusted = async ({ rooms: { trust } }: TestCore) => {
    await trust.follow();
    return [...trust.setOf('schedulers')];
  };
  const { alice, bob } = signers;
  await using first = await createTestCore({ database, trust: trusting(alice.address) });
  const options = { database, trust: trusting(bob.address), isLeading: () => false };
  await using second = await createTestCore(options);
  assert.deepEqual(await Promise.all([first, second].map(trusted)), [[alice.address], [alice.address]]);
  const { rooms, blobs } = second;
  const leading = new Leading({
    ...{ rooms, blobs, pool: database.pool, anchors: [], log },
    config: readConfig(coreConfig, {}),
    isServing: () => true,
  });
  await using _work = await leading.begin(new AbortController().signal);
  assert.deepEqual(await Promise.all([first, second].map(trusted)), [[bob.address], [bob.address]]);
});
