import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDeclaration } from './abi/declaration.ts';
import { topicOf } from './abi/topic.ts';
import { ABI_LIMITS } from './abi/types.ts';
import { SETTINGS_OWNER } from './store/scans.ts';
import { TRANSFER } from './testing/contracts.ts';
import { createNetwork, EXEMPT, events, HONEST, LIMITS, ownerOf, STRANGER } from './testing/owners.ts';
import { OTHER, TOKEN } from './testing/setup.ts';
import { EARLIER } from './watch-limits.ts';

const STANDING = { ...LIMITS, standingCredits: 5 };
const refused = {
  code: 'WATCH_LIMIT_REACHED',
  message: `owners who have less than 5 credits can have ${ABI_LIMITS.eventsOfOwners / 2} of the ${ABI_LIMITS.eventsOfOwners} events declared here`,
};

test('half of the events is for owners who have credit: however many keys declare, they take none of it', async () => {
  await using network = await createNetwork(STANDING);
  const { ask } = network;
  const { eventsPerAbi: perAsk, eventsPerOwner, eventsOfOwners } = ABI_LIMITS;
  const half = eventsOfOwners / 2;
  const fill = async (from: number, to: number, credits: bigint) => {
    for (let first = from; first < to; first += perAsk)
      await ask(ownerOf(Math.floor(first / eventsPerOwner)), events(first, perAsk), 0, TOKEN, credits);
  };
  await fill(0, half, 0n);
  const more = ['event More()'];
  for (const credits of [-1n, 4n]) await assert.rejects(ask(STRANGER, more, 0, TOKEN, credits), refused);
  await ask(HONEST, more, 0, TOKEN, 5n);
  // Strangers keep what they have, and may say it otherwise.
  await ask(ownerOf(0), ['event E1()', 'event E0()'], 0, TOKEN, 0n);
  await assert.rejects(ask(STRANGER, ['event E0()', ...more], 0, TOKEN, 0n), refused);
  await ask(STRANGER, ['event E0()'], 0, TOKEN, 0n);
  await fill(half, eventsOfOwners - perAsk, 5n);
  await ask(EXEMPT, ['event Other()']);
  await assert.rejects(ask(HONEST, events(eventsOfOwners - perAsk, perAsk), 0, TOKEN, 5n), {
    message: `all owners together can have ${eventsOfOwners} events declared here`,
  });
});

test('so is half of the contracts, and of the events that are extended to earlier blocks', async () => {
  await using network = await createNetwork({ ...STANDING, watchesMax: 20 });
  const { pool, ask } = network;
  const abi = events(0, ABI_LIMITS.eventsPerAbi);
  await ask(SETTINGS_OWNER, abi, 1_000);
  const times = EARLIER.max / 2 / abi.length;
  for (let time = 1; time <= times; time++)
    await ask(ownerOf(Math.ceil(time / 2)), abi, 1_000 - time, TOKEN, 0n);
  await assert.rejects(ask(STRANGER, ['event E0()'], 0, TOKEN, 0n), {
    code: 'WATCH_LIMIT_REACHED',
    message:
      'owners who have less than 5 credits can have 2048 of the 4096 events being extended to earlier blocks here; those of this contract are read from where they were read before',
  });
  await ask(HONEST, ['event E0()'], 0, TOKEN, 5n);

  await pool.query('delete from indexer_watches');
  for (let index = 0; index < 10; index++) await ask(ownerOf(index), ['event E0()'], 1_000, TOKEN, 0n);
  await assert.rejects(ask(STRANGER, ['event E0()'], 1_000, TOKEN, 0n), {
    code: 'WATCH_LIMIT_REACHED',
    message: 'owners who have less than 5 credits can have 10 of the 20 contracts indexed here',
  });
  for (let index = 10; index < 20; index++) await ask(ownerOf(index), ['event E0()'], 1_000, TOKEN, 5n);
  await ask(ownerOf(0), ['event E1()'], 1_000, TOKEN, 0n);
  await assert.rejects(ask(HONEST, ['event E0()'], 1_000, TOKEN, 5n), {
    message: 'all owners together can have 20 contracts indexed here',
  });
});

test('where no credit is asked for, or nobody can have any, strangers have all there is', async () => {
  const limits = { ...STANDING, watchesMax: 2 };
  for (const [standingCredits, credits] of [
    [0, -1n],
    [5, undefined],
  ] as const) {
    await using network = await createNetwork({ ...limits, standingCredits });
    for (const owner of [STRANGER, HONEST]) await network.ask(owner, [TRANSFER], 0, TOKEN, credits);
  }
});

test('what strangers declare after owners who have credit is theirs too: when those leave, no more is kept than strangers can have', async () => {
  await using network = await createNetwork(STANDING);
  const { ask, leave } = network;
  const { eventsPerAbi: perAsk, eventsPerOwner, eventsOfOwners } = ABI_LIMITS;
  const asks = Array.from({ length: eventsOfOwners / perAsk }, (_, index) => index);
  const askerOf = (index: number) => ownerOf(Math.floor((index * perAsk) / eventsPerOwner));
  for (const index of asks) await ask(askerOf(index), events(index * perAsk, perAsk), 0, TOKEN, 5n);
  const copier = (index: number) => ownerOf(1_000 + Math.floor((index * perAsk) / eventsPerOwner));
  for (const index of asks.slice(0, asks.length / 2))
    await ask(copier(index), events(index * perAsk, perAsk), 0, TOKEN, 0n);
  await assert.rejects(ask(STRANGER, events(eventsOfOwners - perAsk, 1), 0, TOKEN, 0n), refused);
  for (const owner of new Set(asks.map(askerOf))) await leave(owner);
  // Their own half is free again.
  for (const index of asks.slice(asks.length / 2))
    await ask(askerOf(index), events(index * perAsk, perAsk), 0, HONEST, 5n);
});

test('what an owner who has credit leaves to strangers is read on while they have room for it', async () => {
  await using network = await createNetwork(STANDING);
  const { ask, leave, namesRead, countOf } = network;
  const { eventsPerAbi: perAsk, eventsPerOwner, eventsOfOwners } = ABI_LIMITS;
  const theirs = 'event Theirs()';
  await ask(HONEST, events(0, 2), 0, TOKEN, 5n);
  await ask(STRANGER, [theirs], 0, TOKEN, 0n);
  await leave(HONEST);
  assert.deepEqual(await namesRead(), ['Theirs', 'E0', 'E1']);
  await ask(HONEST, [...events(0, 2), 'event Anew()'], 0, TOKEN, 5n);
  const half = eventsOfOwners / 2;
  // Beside the one of theirs.
  for (let first = 0; first < half; first += perAsk)
    await ask(
      ownerOf(Math.floor(first / eventsPerOwner)),
      events(first, first === 0 ? perAsk - 1 : perAsk),
      0,
      OTHER,
      0n,
    );
  const topicsRead = async () => {
    const { rows } = await network.pool.query<{ topics: string[] }>(
      'select topics from indexer_scans where contract_id = $1',
      [await network.contractId()],
    );
    return rows.flatMap(({ topics }) => topics);
  };
  await network.pool.query('update indexer_scans set next_block = 99');
  await leave(HONEST);
  assert.equal(await countOf(`indexer_abis where owner = '${HONEST}'`), 0);
  assert.deepEqual(await namesRead(), ['Theirs']);
  assert.deepEqual(await topicsRead(), [topicOf(parseDeclaration(theirs))]);
  // Or whoever asks and withdraws would keep strangers from having anything.
  assert.equal(await countOf('indexer_contracts where removed'), 0);
  assert.equal(await countOf('indexer_scans where next_block <> 99'), 0, 'what they read is not read again');
  await ask(HONEST, events(0, 2), 0, TOKEN, 5n);
  assert.equal((await topicsRead()).length, 3);
});

test('what an owner adds when the credit is used up is of what strangers can have', async () => {
  await using network = await createNetwork({ ...STANDING, watchesMax: 4 });
  const { ask, countOf } = network;
  await ask(HONEST, ['event A()'], 0, TOKEN, 5n);
  await ask(HONEST, ['event A()'], 0, TOKEN, 0n);
  assert.equal(await countOf('indexer_abis where standing'), 1);
  await ask(HONEST, ['event B()'], 0, TOKEN, 0n);
  assert.equal(await countOf('indexer_abis where standing'), 0);
  await ask(HONEST, ['event B()'], 0, TOKEN, 5n);
  assert.equal(await countOf('indexer_abis where standing'), 1);
  // Of contracts it is so one by one.
  for (const contract of [OTHER, STRANGER]) await ask(HONEST, ['event A()'], 0, contract, 0n);
  await assert.rejects(ask(HONEST, ['event A()'], 0, EXEMPT, 0n), {
    message: 'owners who have less than 5 credits can have 2 of the 4 contracts indexed here',
  });
  await ask(HONEST, ['event A()'], 0, EXEMPT, 5n);
});
