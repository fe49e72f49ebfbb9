import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { linkTo } from '../../peers/sync/testing/setup.ts';
import { NodeAnchor } from '../../sim/testing/anchor.ts';
import { ChainView, EMITTER, FINAL_DEPTH, VirtualChain } from '../../sim/testing/chain.ts';
import { SeededDice } from '../../sim/testing/dice.ts';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, instanceContent, MIGRATIONS, signers, type TestCore } from '../../testing/core.ts';
import type { ChainReader } from './reader.ts';

const T = 1_700_000_000;
const log = createLogger('test', 'silent');
const signal = new AbortController().signal;

const machine = (timestamp: number) =>
  signMessage({ type: 'INSTANCE', content: instanceContent, timestamp, nonce: 'n' }, signers.bob);

const archived = (body: string) => {
  const { signature, address } = JSON.parse(body);
  return {
    signed_text: body.slice('{"message":'.length, body.lastIndexOf(',"signature"')),
    signature,
    address,
  };
};

test('H1, H2: what a settled block has was there by then, also for a node that follows no chain; a block that may go says nothing', async () => {
  await using stack = new AsyncDisposableStack();
  let nowMs = T * 1000;
  const now = () => nowMs;
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const core = stack.use(await createTestCore({ database, now }));
  const other = stack.use(await createTestCore({ now, peers: [linkTo('follower', () => core)] }));
  const chain = new VirtualChain(new SeededDice(1), now);
  const view = new ChainView(chain);
  const anchor = new NodeAnchor({ core, database, view, emitter: undefined, random: Math.random, log });
  const old = machine(0);
  const honest = machine(T);
  nowMs += 300_000;
  const messages = [old, honest].map(({ body }) => archived(body));
  chain.emit(EMITTER, JSON.stringify({ protocol: 'aleph', version: 1, content: { messages } }));
  chain.mine();
  nowMs += 10_000_000;
  const look = async (of: TestCore = core) => {
    view.look();
    await anchor.follow();
    if (of === other) await other.rooms.sync.syncer.round(signal);
    const dates: unknown[] = [];
    for (const { itemHash } of [old, honest]) {
      const { body } = await of.get(`/instances/${itemHash}`);
      dates.push(body.effective_at - T);
    }
    return dates;
  };
  assert.deepEqual(await look(), [10_300, 10_300], 'the block is not settled');
  assert.deepEqual(await look(other), [10_300, 10_300]);
  for (let block = 0; block < FINAL_DEPTH; block++) chain.mine();
  assert.deepEqual(await look(), [300, 0], 'one was late even then, the other came in time');
  assert.deepEqual(await look(other), [300, 0]);
});

test('H1, H2: a message that comes after the block that has it is dated by it, too', async () => {
  await using stack = new AsyncDisposableStack();
  let nowMs = (T + 300) * 1000;
  const now = () => nowMs;
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const core = stack.use(await createTestCore({ database, now }));
  const chain = new VirtualChain(new SeededDice(1), now);
  const view = new ChainView(chain);
  const anchor = new NodeAnchor({ core, database, view, emitter: undefined, random: Math.random, log });
  const { body, itemHash } = machine(T);
  chain.emit(
    EMITTER,
    JSON.stringify({ protocol: 'aleph', version: 1, content: { messages: [archived(body)] } }),
  );
  for (let block = 0; block <= FINAL_DEPTH + 1; block++) chain.mine();
  view.look();
  await anchor.follow();
  // As when an archive names a file whose message is made by whoever has the file.
  await core.rooms.db.deleteFrom('messages').execute();
  nowMs += 10_000_000;
  await core.post('/messages', body);
  await anchor.follow();
  await core.rooms.pipeline.idle();
  const { body: view2 } = await core.get(`/instances/${itemHash}`);
  assert.equal(view2.effective_at, T);
});

test('a message that comes while its event is looked at is dated by the block, too', async () => {
  await using stack = new AsyncDisposableStack();
  let nowMs = (T + 300) * 1000;
  const now = () => nowMs;
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const core = stack.use(await createTestCore({ database, now }));
  const chain = new VirtualChain(new SeededDice(1), now);
  const view = new ChainView(chain);
  const { intake, db } = core.rooms;
  const [old, honest] = [machine(0), machine(T)];
  const date: typeof intake.block.date = async (row, timeMs) => {
    if (row.item_hash === old.itemHash) await core.post('/messages', honest.body);
    return intake.block.date(row, timeMs);
  };
  const rooms = { ...core.rooms, intake: { ...intake, block: { date } } };
  const anchored = { ...core, rooms } as TestCore;
  const anchor = new NodeAnchor({
    ...{ core: anchored, database, view, emitter: undefined, random: Math.random, log },
  });
  const messages = [old, honest].map(({ body }) => archived(body));
  chain.emit(EMITTER, JSON.stringify({ protocol: 'aleph', version: 1, content: { messages } }));
  chain.mine();
  nowMs += 10_000_000;
  view.look();
  await anchor.follow();
  await db.deleteFrom('messages').where('item_hash', '=', honest.itemHash).execute();
  for (let block = 0; block < FINAL_DEPTH; block++) chain.mine();
  view.look();
  await anchor.follow();
  await core.rooms.pipeline.idle();
  const { body } = await core.get(`/instances/${honest.itemHash}`);
  assert.equal(body.effective_at, T);
});

test('a reorganisation that leaves a transaction at its place in a block of another time takes the time of the other block', async () => {
  await using stack = new AsyncDisposableStack();
  const now = () => (T + 10_000_000) * 1000;
  const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const core = stack.use(await createTestCore({ database, now }));
  const { body, itemHash } = machine(T);
  const message = JSON.stringify({ protocol: 'aleph', version: 1, content: { messages: [archived(body)] } });
  let [timestamp, settledTo] = [T + 300, -1];
  const indexed = { genesisHash: 'genesis', reading: randomUUID() };
  const view: ChainReader = {
    findChain: async () => indexed,
    readEvents: async (fromBlock) => {
      const event = { timestamp, blockNumber: 5, logIndex: 0, transactionHash: '0x05', name: 'SyncEvent' };
      const events = fromBlock > 5 ? [] : [{ ...event, args: { addr: EMITTER, message } }];
      const read = { readTo: 5, coveredTo: 5, isAtTip: true, settledTo, isCut: false, head: 5, requests: 0 };
      return { ...read, ...indexed, events };
    },
  };
  const anchor = new NodeAnchor({
    ...{ core, database, view, emitter: undefined, random: Math.random, log },
  });
  await anchor.follow();
  [timestamp, settledTo] = [T + 1_000_000, 5];
  await anchor.follow();
  await core.rooms.pipeline.idle();
  const { body: instance } = await core.get(`/instances/${itemHash}`);
  assert.equal(instance.effective_at, T + 1_000_000);
  const told = await core.rooms.db
    .selectFrom('events')
    .selectAll()
    .where('kind', '=', 'message_unconfirmed')
    .execute();
  assert.deepEqual(told, [], 'its confirmation is the same');
});
