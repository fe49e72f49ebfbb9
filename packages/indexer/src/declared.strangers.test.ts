import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { ABI_LIMITS } from './abi/types.ts';
import { listCoverageOf } from './read/status.ts';
import { listContractEvents } from './store/declared.ts';
import { ensureNetwork } from './store/networks.ts';
import { SETTINGS_OWNER } from './store/scans.ts';
import { TRANSFER } from './testing/contracts.ts';
import { createIndexerDatabase, NETWORK, TOKEN } from './testing/setup.ts';
import { unwatchContract, watchContract } from './watch.ts';

const STRANGER = `0x${'66'.repeat(20)}`;
const HONEST = `0x${'77'.repeat(20)}`;
const LIMITS = { watchesPerOwner: 20, watchesMax: 100 };

const ownerOf = (index: number) => `0x${index.toString(16).padStart(40, '0')}`;
const events = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => `event E${from + index}()`);

/** An indexed network without a chain: what is asked for is only noted. */
async function createNetwork() {
  const database = await createIndexerDatabase();
  const { pool } = database;
  const { id: networkId } = await ensureNetwork(pool, NETWORK, 1);
  const place = { network: NETWORK, contract: TOKEN };
  const ask = (owner: string, abi: readonly string[], startBlock = 0, contract = TOKEN) =>
    watchContract(
      pool,
      { network: NETWORK, contract, abi, startBlock, owner },
      owner === SETTINGS_OWNER ? undefined : LIMITS,
    );
  const contractId = async () =>
    (await pool.query<{ id: number }>('select id from indexer_contracts where address = $1', [TOKEN]))
      .rows[0]!.id;
  const namesRead = async () => {
    const id = await contractId();
    return (await listContractEvents(pool, [id])).get(id)?.map(({ definition }) => definition.name);
  };
  const countOf = async (table: string) => (await pool.query(`select from ${table}`)).rowCount;
  return {
    ...{ pool, networkId, ask, contractId, namesRead, countOf },
    leave: (owner: string) => unwatchContract(pool, { ...place, owner }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

test('however often and in whatever order an owner declares events, each is kept once, the latest first', async () => {
  await using network = await createNetwork();
  const { ask, namesRead, countOf } = network;
  await ask(STRANGER, ['event A()', 'event B()', 'event C()']);
  await ask(HONEST, ['event D()']);
  for (const abi of [
    ['event B()'],
    ['event C()', 'event A()'],
    ['event B()', 'event C()', 'event A()'],
    ['event C()', 'event A()'],
    ['event B()', 'event E()'],
  ])
    await ask(STRANGER, abi);
  assert.equal(await countOf('indexer_abis'), 2);
  // Whoever asked first is still the first, whatever they have declared since.
  assert.deepEqual(await namesRead(), ['B', 'E', 'C', 'A', 'D']);
  await ask(SETTINGS_OWNER, ['event Own()', 'event A()']);
  assert.deepEqual(await namesRead(), ['Own', 'A', 'B', 'E', 'C', 'D']);
});

test('versions that were written apart are read as before, and become one', async () => {
  await using network = await createNetwork();
  const { pool, ask, namesRead, countOf } = network;
  await ask(STRANGER, ['event A()', 'event B()']);
  await ask(HONEST, ['event C()']);
  await pool.query(
    `insert into indexer_abis (contract_id, version, owner, event_ids)
     select contract_id, 7, owner, event_ids[2:2] from indexer_abis where owner = $1`,
    [STRANGER],
  );
  assert.deepEqual(await namesRead(), ['B', 'A', 'C']);
  await ask(STRANGER, ['event D()']);
  assert.deepEqual(await namesRead(), ['D', 'B', 'A', 'C']);
  assert.equal(await countOf('indexer_abis'), 2);
});

test('who asks no more leaves behind what logs are read by and nobody else declares', async () => {
  await using network = await createNetwork();
  const { ask, leave, namesRead, countOf } = network;
  await ask(SETTINGS_OWNER, [TRANSFER]);
  for (let index = 0; index < 3; index++) {
    await ask(ownerOf(index), [TRANSFER, 'event Left()']);
    await leave(ownerOf(index));
  }
  assert.deepEqual(await namesRead(), ['Transfer', 'Left']);
  assert.equal(await countOf('indexer_abis'), 2);
  await leave(SETTINGS_OWNER);
  assert.equal(await countOf('indexer_abis'), 0);
});

test('all owners together declare so many events that a look at a chain stays a small thing', async () => {
  await using network = await createNetwork();
  const { ask, leave } = network;
  const perAsk = ABI_LIMITS.eventsPerAbi;
  await ask(SETTINGS_OWNER, [TRANSFER]);
  for (let from = 0; from < ABI_LIMITS.eventsOfOwners; from += perAsk) {
    const owner = ownerOf(Math.floor(from / ABI_LIMITS.eventsPerOwner));
    await ask(owner, events(from, perAsk));
    // What is read by them stays.
    if (from % (4 * perAsk) === perAsk) await leave(owner);
  }
  const more = 'event More()';
  for (const contract of [TOKEN, HONEST])
    await assert.rejects(ask(HONEST, [more], 0, contract), {
      code: 'WATCH_LIMIT_REACHED',
      message: `all owners together can declare ${ABI_LIMITS.eventsOfOwners} events here`,
    });
  // What is declared already is nothing more, nor is what the operator of the node declares.
  await ask(HONEST, [TRANSFER, 'event E0()']);
  await ask(SETTINGS_OWNER, [more]);
  await ask(HONEST, [more]);
});

test('earlier blocks of what is read already are asked for a number of times, and not for ever', async () => {
  await using network = await createNetwork();
  const { ask, countOf } = network;
  const abi = events(0, ABI_LIMITS.eventsPerAbi);
  const times = 4_096 / abi.length;
  for (let time = 0; time <= times; time++) await ask(STRANGER, abi, 1_000 - time);
  const scans = await countOf('indexer_scans');
  await assert.rejects(ask(STRANGER, abi, 0), { code: 'WATCH_LIMIT_REACHED' });
  await assert.rejects(ask(HONEST, ['event E0()'], 0), { code: 'WATCH_LIMIT_REACHED' });
  assert.equal(await countOf('indexer_scans'), scans);
  // What begins no earlier, or is not read yet, goes on to be asked for.
  await ask(HONEST, ['event E0()'], 1_000 - times);
  await ask(HONEST, [TRANSFER], 0);
});

test('what a contract declares is read once, and again when it has changed', async () => {
  await using network = await createNetwork();
  const { pool, networkId, ask, contractId, namesRead } = network;
  await ask(STRANGER, events(0, 100));
  await ask(HONEST, ['event Other(uint256 a)']);
  let definitions = 0;
  const counting = {
    query: async (text: string, parameters: unknown[]) => {
      const answer = await pool.query(text, parameters);
      definitions += answer.rows.filter(({ definition }) => definition).length;
      return answer;
    },
  } as unknown as pg.Pool;
  const id = await contractId();
  const first = (await listContractEvents(counting, [id, id])).get(id);
  assert.equal(definitions, 101);
  assert.equal((await listContractEvents(counting, [id])).get(id), first);
  for (const eventName of ['E7', 'E7()'])
    assert.equal((await listCoverageOf(counting, networkId, { address: TOKEN, eventName })).length, 1);
  assert.equal(definitions, 101);
  // Somebody declares something else, or asks no more: the order is another one.
  await ask(HONEST, ['event New()']);
  assert.equal((await namesRead())?.at(-2), 'New');
  await network.leave(STRANGER);
  assert.deepEqual((await namesRead())?.slice(0, 3), ['New', 'Other', 'E0']);
});
