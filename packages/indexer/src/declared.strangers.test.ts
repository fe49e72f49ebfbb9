import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type pg from 'pg';
import { ABI_LIMITS } from './abi/types.ts';
import { listCoverageOf } from './read/status.ts';
import { parseIndexerSettings } from './settings.ts';
import { listContractEvents } from './store/declared.ts';
import { listScans, SETTINGS_OWNER } from './store/scans.ts';
import { joinScans } from './store/upkeep.ts';
import { TRANSFER } from './testing/contracts.ts';
import { createNetwork, EXEMPT, events, HONEST, ownerOf, STRANGER } from './testing/owners.ts';
import { TOKEN } from './testing/setup.ts';
import { EARLIER } from './watch-limits.ts';

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
  await ask(EXEMPT, events(100_000, perAsk));
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
      message: `all owners together can have ${ABI_LIMITS.eventsOfOwners} events declared here`,
    });
  // What is declared already is nothing more, nor is what the operator of the node declares, or exempts.
  await ask(HONEST, [TRANSFER, 'event E0()', 'event E100000()']);
  await ask(SETTINGS_OWNER, [more]);
  await ask(HONEST, [more]);
  await ask(EXEMPT, ['event OneMore()']);
  await ask(HONEST, ['event OneMore()']);
});

test('one owner declares a share of the events that there are for all, also by contracts that were left', async () => {
  await using network = await createNetwork();
  const { ask, leave, countOf } = network;
  const perAsk = ABI_LIMITS.eventsPerAbi;
  await ask(HONEST, [TRANSFER]);
  await ask(SETTINGS_OWNER, ['event Own()']);
  await ask(STRANGER, [...events(0, perAsk - 1), 'event Own()']);
  for (let from = perAsk; from < ABI_LIMITS.eventsOfOneOwner; from += perAsk)
    await ask(STRANGER, events(from, perAsk), 0, ownerOf(from));
  // What the settings declare counts for nobody.
  await ask(STRANGER, ['event Last()'], 0, ownerOf(perAsk));
  await leave(STRANGER);
  const watches = await countOf('indexer_watches');
  for (const contract of [TOKEN, ownerOf(perAsk), ownerOf(1)])
    await assert.rejects(ask(STRANGER, ['event More()'], 0, contract), {
      code: 'WATCH_LIMIT_REACHED',
      message: `one owner can declare ${ABI_LIMITS.eventsOfOneOwner} events of all contracts here`,
    });
  assert.equal(await countOf('indexer_watches'), watches);
  await ask(HONEST, events(0, perAsk));
});

test('an owner whom the settings exempt has no limits, and takes up nothing that there is for others', async () => {
  const file = {
    networks: [],
    watches_per_owner: 1,
    watches_max: 1,
    exempt_owners: [`0x${'EE'.repeat(20)}`],
  };
  await using network = await createNetwork(parseIndexerSettings(file));
  const { ask } = network;
  const perAsk = ABI_LIMITS.eventsPerAbi;
  for (let from = 0; from <= ABI_LIMITS.eventsOfOneOwner; from += perAsk)
    await ask(EXEMPT, events(from, perAsk), 1_000);
  for (let times = 0; times * perAsk <= EARLIER.perOwner; times++)
    await ask(EXEMPT, events(0, perAsk), 999 - times);
  await ask(EXEMPT, [TRANSFER], 0, HONEST);
  await ask(STRANGER, ['event Other()']);
  await assert.rejects(ask(HONEST, [TRANSFER]), {
    code: 'WATCH_LIMIT_REACHED',
    message: 'all owners together can have 1 contracts indexed here',
  });
  await ask(EXEMPT, [TRANSFER], 0, STRANGER);
  for (const owner of ['0x12', 'nobody'])
    assert.throws(() => parseIndexerSettings({ ...file, exempt_owners: [owner] }), {
      code: 'INVALID_CONFIG',
      message: /^exempt_owners in the indexer file: /,
    });
});

test('an operator ends the requests of an owner as the page says, and they are free', async () => {
  await using network = await createNetwork();
  const { pool, ask, namesRead, countOf } = network;
  const page = await readFile(new URL('../../../docs/indexer.md', import.meta.url), 'utf8');
  const statements = /```sql\n(.+?)```/s.exec(page)![1]!.replaceAll('0x…', STRANGER);
  const perAsk = ABI_LIMITS.eventsPerAbi;
  await ask(HONEST, [TRANSFER]);
  for (let from = 0; from < ABI_LIMITS.eventsOfOneOwner; from += perAsk)
    await ask(STRANGER, events(from, perAsk), 0, from === 0 ? TOKEN : ownerOf(from));
  await pool.query(statements);
  assert.deepEqual(await namesRead(), ['Transfer']);
  // TOKEN's are read by what is declared: of these nothing is any more.
  assert.equal(await countOf('indexer_scans'), 2);
  assert.equal(await countOf('indexer_contracts where not removed'), 1);
  await ask(STRANGER, ['event More()']);
});

test('earlier blocks are asked for a number of times; whoever comes after that has all but those', async () => {
  await using network = await createNetwork();
  const { pool, networkId, ask, leave, countOf } = network;
  const abi = events(0, ABI_LIMITS.eventsPerAbi);
  const times = EARLIER.max / abi.length;
  const each = EARLIER.perOwner / abi.length;
  await ask(SETTINGS_OWNER, abi, 1_000);
  for (let time = 1; time <= times; time++) {
    const owner = ownerOf(Math.ceil(time / each));
    await ask(owner, abi, 1_000 - time);
    if (time !== each) continue;
    // Nor is there more for who asks anew.
    await leave(owner);
    await assert.rejects(ask(owner, ['event E0()'], 0), {
      code: 'WATCH_LIMIT_REACHED',
      message: /^one owner can extend 512 events to earlier blocks here; /,
    });
  }
  const scans = await countOf('indexer_scans');
  await assert.rejects(ask(STRANGER, abi, 0), { code: 'WATCH_LIMIT_REACHED', message: /^all owners/ });
  assert.equal(await countOf('indexer_scans'), scans);
  await assert.rejects(ask(HONEST, ['event E0()', TRANSFER], 0), { code: 'WATCH_LIMIT_REACHED' });
  const topics = (await listScans(pool, networkId)).filter(({ fromBlock }) => fromBlock === 0);
  assert.deepEqual(
    topics.map((scan) => [scan.topics.length, scan.toBlock]),
    [[1, null]],
  );
  const { rowCount } = await pool.query('select from indexer_watches where owner = $1', [HONEST]);
  assert.equal(rowCount, 1);
  // What begins no earlier goes on to be asked for.
  await ask(HONEST, ['event E0()'], 1_000 - times);
  await ask(EXEMPT, abi);
});

test('earlier blocks that are read and final are part of what follows the tip, and count no more', async () => {
  await using network = await createNetwork();
  const { pool, networkId, ask } = network;
  await ask(SETTINGS_OWNER, ['event A()', 'event B()', 'event C()'], 1_000);
  await ask(STRANGER, ['event A()', 'event B()'], 900);
  await ask(HONEST, ['event A()'], 800);
  await ask(HONEST, ['event C()'], 700);
  const listed = async () =>
    (await listScans(pool, networkId))
      .map(({ topics, fromBlock, toBlock, live }) => [topics.length, fromBlock, toBlock, live])
      .toSorted((a, b) => Number(a[1]) - Number(b[1]));
  const before = await listed();
  assert.equal(before.length, 4);
  // Nothing is read yet; then all but the last, which is not final.
  assert.equal(await joinScans(pool, networkId), 0);
  await pool.query(
    `update indexer_scans set live = to_block is null,
       next_block = coalesce(to_block + (from_block <> 700)::integer, next_block)`,
  );
  await pool.query('update indexer_networks set floor_number = 998');
  assert.equal(await joinScans(pool, networkId), 0);
  await pool.query('update indexer_networks set floor_number = 999');
  assert.equal(await joinScans(pool, networkId), 1);
  assert.deepEqual(await listed(), [
    [1, 700, 999, false],
    [1, 800, null, true],
    [1, 900, null, true],
    [1, 1_000, null, true],
  ]);
  await pool.query('update indexer_scans set next_block = to_block + 1 where not live');
  assert.equal(await joinScans(pool, networkId), 1);
  assert.equal(await joinScans(pool, networkId), 0);
  assert.deepEqual(
    (await listed()).map(([, from, , live]) => [from, live]),
    [
      [700, true],
      [800, true],
      [900, true],
    ],
  );
  const coverage = await listCoverageOf(pool, networkId, { address: TOKEN, eventName: 'C' });
  assert.deepEqual(
    coverage.map(({ fromBlock, live }) => [fromBlock, live]),
    [[700, true]],
  );
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
