import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { hashText } from '@skerry/indexer';
import {
  Anvil,
  networkSettings,
  OTHER,
  TOKEN,
  TRANSFER,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from '@skerry/indexer/testing';
import { checksumAddress, type EvmAddress } from '@skerry/protocol';
import { encodeAbiParameters } from 'viem';
import { createTestCore, type TestCore } from '../testing/core.ts';

const ALICE = `0x${'a1'.repeat(20)}`;
const BOB = `0x${'b0'.repeat(20)}`;
const NAMED = 'event Named(string indexed name, uint256 id)';
const NAMED_OTHER = 'event Named(uint256 id)';
const LISTED = 'event Listed(uint256[] ids, (string label, address who) by)';
const GENESIS_TIME = 1_700_000_000;
const TRANSFERS = 30;
const HUGE = 2n ** 255n;

describe('GET /indexer', () => {
  let core: TestCore;
  let anvil: Anvil;
  before(async () => {
    anvil = await Anvil.start(['--timestamp', String(GENESIS_TIME)]);
    await anvil.setCode(TOKEN);
    await anvil.setCode(OTHER);
    for (let value = 0; value < TRANSFERS; value++) {
      await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(value % 2 ? ALICE : BOB), word(BOB)], word(value));
      await anvil.emit(
        OTHER,
        [hashText('Named(string,uint256)'), hashText('maria')],
        word(HUGE + BigInt(value)),
      );
      if (value % 3 === 0) await anvil.emit(OTHER, [hashText('Named(uint256)')], word(value));
      await anvil.call('evm_setNextBlockTimestamp', GENESIS_TIME + 10 * (value + 1));
      await anvil.mine();
    }
    // A log that has the topic of Transfer and not its form.
    await anvil.emit(TOKEN, [TRANSFER_TOPIC], word(7));
    for (const [ids, label] of [
      [[5n, 7n], '0xAB'],
      [[], '0xab'],
    ] as const)
      await anvil.emit(
        OTHER,
        [hashText('Listed(uint256[],(string,address))')],
        encodeAbiParameters(
          [{ type: 'uint256[]' }, { type: 'tuple', components: [{ type: 'string' }, { type: 'address' }] }],
          [ids, [label, BOB as EvmAddress]],
        ),
      );
    await anvil.emit(OTHER, [hashText('Said(string)')], encodeAbiParameters([{ type: 'string' }], ['0xAB']));
    await anvil.mine();
    const network = networkSettings([anvil.url], {
      contracts: [
        { address: TOKEN, abi: [TRANSFER], transactions: true },
        { address: OTHER, abi: [NAMED, NAMED_OTHER, LISTED, 'event Said(string text)'] },
      ],
    });
    // Several partitions for so few blocks: the settings of people do not go so low.
    const networks = [{ ...network, partition_blocks: 4 }];
    core = await createTestCore({
      indexer: {
        ...{ networks, watchesPerOwner: 2, watchesMax: 100, exemptOwners: [], standingCredits: 0 },
        decodeThreads: 0,
      },
    });
    await untilIndexed(core.rooms.indexer.pool, anvil);
  });
  after(async () => {
    await core[Symbol.asyncDispose]();
    await anvil[Symbol.asyncDispose]();
  });

  test('metrics say how far it is and what it costs', async () => {
    const { body } = await core.api.inject({ url: '/metrics' });
    const read = (name: string) =>
      Number(new RegExp(`^skerry_indexer_${name}\\{network="anvil"[^}]*\\} (\\S+)$`, 'm').exec(body)?.[1]);
    assert.equal(read('stalled'), 0);
    assert.equal(read('subscribed'), 0);
    assert.ok(read('rpc_requests') > 0 && read('rpc_calls') >= read('rpc_requests'));
    assert.ok(read('progress_age_seconds') < 60);
    assert.match(body, /^skerry_indexer_rpc_calls\{network="anvil",endpoint="127\.0\.0\.1:\d+#0"\}/m);
  });

  const list = async (query: Record<string, string | number>, kind = 'events') => {
    const { status, body } = await core.get(
      `/indexer/anvil/${kind}?${new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]))}`,
    );
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };

  test('an event has the fields of the specification, and the list says how true it is', async () => {
    const body = await list({
      contract: checksumAddress(TOKEN as EvmAddress),
      event_name: 'Transfer',
      limit: 1,
    });
    assert.match(body.events[0].transaction_hash, /^0x[0-9a-f]{64}$/);
    const { transaction_hash: _, ...event } = body.events[0];
    assert.deepEqual(event, {
      block_number: 30,
      log_index: 0,
      contract: TOKEN,
      event_name: 'Transfer',
      event_signature: 'Transfer(address,address,uint256)',
      event_parameters: ['from', 'to', 'value'],
      args: { from: ALICE, to: BOB, value: '29' },
      timestamp: GENESIS_TIME + 300,
    });
    assert.deepEqual(body.pagination, {
      total: 30,
      page: 1,
      per_page: 1,
      total_pages: 30,
      total_is_exact: true,
    });
    assert.deepEqual([body.head, body.indexed, body.lag, body.state], [31, 31, 0, 'live']);
    const coverageOf = async (query: Record<string, string>) =>
      (await list({ contract: TOKEN, ...query })).coverage.map(
        ({ kind, from_block, to_block, live }: Record<string, unknown>) => [kind, from_block, to_block, live],
      );
    assert.deepEqual(await coverageOf({}), [
      ['events', 0, 31, true],
      ['transactions', 0, 31, true],
    ]);
    assert.deepEqual(await coverageOf({ event_name: 'Transfer' }), [['events', 0, 31, true]]);
    // The contract's transactions are read, too, and say nothing of an event that nobody declared.
    assert.deepEqual(await coverageOf({ event_name: 'Undeclared' }), []);
  });

  const total = async (query: Record<string, string | number>) => {
    const body = await list({ ...query, limit: 100 });
    assert.equal(body.events.length, body.pagination.total);
    return body.pagination.total;
  };

  test('every filter, alone and together', async () => {
    assert.equal(await total({}), 74);
    assert.equal(await total({ contract: TOKEN }), 31);
    assert.equal(await total({ event_name: 'Named' }), 40);
    assert.equal(await total({ event_name: 'Named(uint256)' }), 10);
    assert.equal(await total({ contract: OTHER, event_name: 'Transfer' }), 0);
    assert.equal(await total({ contract: TOKEN, from_block: 11, to_block: 20 }), 10);
    assert.equal(
      await total({
        event_name: 'Transfer',
        from_timestamp: GENESIS_TIME + 105,
        to_timestamp: GENESIS_TIME + 200,
      }),
      10,
    );
    assert.equal(await total({ from_block: 1_000 }), 0);
    assert.equal(await total({ args: JSON.stringify({ from: ALICE }) }), 15);
    assert.equal(
      await total({ args: JSON.stringify({ from: checksumAddress(ALICE as EvmAddress), value: 29 }) }),
      1,
    );
    assert.equal(await total({ args: JSON.stringify({ from: ALICE }), from_block: 11, to_block: 20 }), 5);
    assert.equal(await total({ args: JSON.stringify({ id: String(HUGE + 5n) }), contract: OTHER }), 1);
    assert.equal(await total({ args: JSON.stringify({ name: 'maria' }), event_name: 'Named' }), 30);
    assert.equal(await total({ args: JSON.stringify({ name: 'mario' }) }), 0);
    assert.equal(await total({ contract: `0x${'99'.repeat(20)}` }), 0);
  });

  test('a list or a tuple is found by all that it is, and a text that looks like bytes as it was written', async () => {
    for (const [args, expected] of [
      [{ ids: [5, 7] }, 1],
      [{ ids: ['5', '7'], by: { label: '0xAB', who: BOB } }, 1],
      [{ ids: [5] }, 0],
      [{ ids: [7, 5] }, 0],
      [{ ids: [] }, 1],
      [{ by: {} }, 0],
      [{ by: { who: BOB } }, 0],
      [{ by: { who: BOB, label: '0xab' } }, 1],
      [{ by: { label: '0xAB', who: BOB } }, 2],
      [{ text: '0xAB' }, 1],
      [{ text: '0xab' }, 0],
    ] as const)
      assert.equal(await total({ args: JSON.stringify(args) }), expected, JSON.stringify(args));
  });

  test('a log that does not fit its ABI is shown as it came', async () => {
    const { events } = await list({ contract: TOKEN, from_block: 31 });
    assert.deepEqual(
      [events[0].event_name, events[0].event_parameters, events[0].args],
      ['', [], { topics: [TRANSFER_TOPIC], data: word(7) }],
    );
  });

  test('pages and cursors give every event once', async () => {
    const seen: string[] = [];
    for (let cursor: string | null = '', round = 0; cursor !== null && round < 20; round++) {
      const body = await list({ limit: 7, ...(cursor ? { cursor } : {}) });
      seen.push(...body.events.map((one: Record<string, unknown>) => `${one.block_number}.${one.log_index}`));
      cursor = body.cursor;
    }
    const paged: string[] = [];
    for (let page = 1; page <= 11; page++) {
      const body = await list({ limit: 7, page });
      paged.push(
        ...body.events.map((one: Record<string, unknown>) => `${one.block_number}.${one.log_index}`),
      );
    }
    assert.equal(new Set(seen).size, 74);
    assert.deepEqual(seen, paged);
  });

  test('transactions: fields, filters, pages', async () => {
    const body = await list({ limit: 1 }, 'transactions');
    const { hash, from, gas, ...rest } = body.transactions[0];
    assert.match(hash, /^0x[0-9a-f]{64}$/);
    assert.match(from, /^0x[0-9a-f]{40}$/);
    assert.ok(Number.isInteger(gas) && typeof rest.gas_price === 'string');
    assert.deepEqual([rest.to, rest.value, rest.block_number], [TOKEN, '0', 31]);
    assert.equal(body.pagination.total, 31);
    for (const [query, expected] of [
      [{ address: TOKEN }, 31],
      [{ address: from }, 31],
      [{ to: TOKEN, from }, 31],
      [{ from: TOKEN }, 0],
      [{ to: TOKEN, from_block: 11, to_block: 20 }, 10],
      [{ address: TOKEN, from_timestamp: GENESIS_TIME + 105, to_timestamp: GENESIS_TIME + 200 }, 10],
    ] as const) {
      const found = await list({ ...query, limit: 100 }, 'transactions');
      assert.deepEqual([found.pagination.total, found.transactions.length], [expected, expected]);
    }
    const next = await list({ limit: 30, cursor: body.cursor }, 'transactions');
    assert.deepEqual([next.transactions.length, next.transactions.at(-1).block_number], [30, 1]);
  });

  test('an unknown network is 404 and names the known ones; the overview lists them', async () => {
    for (const path of ['events', 'transactions']) {
      const { status, body } = await core.get(`/indexer/Nowhere/${path}`);
      assert.deepEqual(
        [status, body.code, body.details],
        [404, 'NETWORK_NOT_FOUND', { networks: ['anvil'] }],
      );
    }
    const { body } = await core.get('/indexer');
    assert.deepEqual(
      body.networks.map((one: Record<string, unknown>) => [one.network, one.chain_id, one.state]),
      [['anvil', 31337, 'live']],
    );
    const { body: status } = await core.get('/indexer/anvil');
    assert.equal(status.contracts.length, 3);
    assert.ok(status.endpoints[0].calls > 0);
    assert.equal((await core.get('/indexer/none')).status, 404);
  });

  for (const [query, code] of [
    ['page=0', 'INVALID_PARAMETERS'],
    ['limit=101', 'INVALID_PARAMETERS'],
    ['limit=x', 'INVALID_PARAMETERS'],
    ['from_block=-1', 'INVALID_PARAMETERS'],
    ['from_block=1e99', 'INVALID_PARAMETERS'],
    ['from_block=5&to_block=4', 'INVALID_PARAMETERS'],
    ['from_timestamp=5&to_timestamp=4', 'INVALID_PARAMETERS'],
    ['contract=0x12', 'INVALID_ADDRESS'],
    ['args={', 'INVALID_PARAMETERS'],
    ['args=[]', 'INVALID_PARAMETERS'],
    ['args={}', 'INVALID_PARAMETERS'],
    ['args={"a":null}', 'INVALID_PARAMETERS'],
    ['args={"a":1.5}', 'INVALID_PARAMETERS'],
    ['args={"a":"%5Cu0000"}', 'INVALID_PARAMETERS'],
    ['args={"a":"%5Cud800"}', 'INVALID_PARAMETERS'],
    ['args={"a%5Cu0000":"b"}', 'INVALID_PARAMETERS'],
    ['args={"%5Cudc00":"b"}', 'INVALID_PARAMETERS'],
    ['args={"a":{"%5Cu0000":"b"}}', 'INVALID_PARAMETERS'],
    ['args={"a":["%5Cud800"]}', 'INVALID_PARAMETERS'],
    ['event_name=%00', 'INVALID_PARAMETERS'],
    ['cursor=abc', 'INVALID_CURSOR'],
    ['cursor=', 'INVALID_CURSOR'],
    [`cursor=${Buffer.from('9.2147483648.9.0').toString('base64url')}`, 'INVALID_CURSOR'],
    ['sort=asc', 'UNKNOWN_FIELD'],
    ['address=0x', 'UNKNOWN_FIELD'],
  ] as const)
    test(`refused: ${query}`, async () => {
      const { status, body } = await core.get(`/indexer/anvil/events?${query}`);
      assert.deepEqual([status, body.code], [400, code], JSON.stringify(body));
    });

  test('logs that are too long for one answer are had in several', async () => {
    const { pool } = core.rooms.indexer;
    await pool.query(
      `insert into indexer_events_n1 (block_number, log_index, contract_id, event_id, "timestamp", transaction_hash, args)
       select 1, 1000 + i, contract_id, event_id, "timestamp", transaction_hash, jsonb_build_object('text', repeat('x', 4 * 1024 * 1024))
       from indexer_events_n1 cross join generate_series(1, 9) i where block_number = 1 and log_index = 0`,
    );
    const { body } = await core.get('/indexer/anvil/events?to_block=1&limit=9');
    assert.equal(body.code, 'LIST_TOO_COSTLY');
    const { events } = await list({ to_block: 1, limit: 2 });
    assert.deepEqual(
      events.map(({ log_index }: { log_index: number }) => log_index),
      [1009, 1008],
    );
    await pool.query('delete from indexer_events_n1 where log_index > 1000');
  });

  test('a reorganisation between two pages is told, not hidden', async () => {
    const first = await list({ limit: 2 });
    await anvil.reorg(3);
    await anvil.mine();
    await untilIndexed(core.rooms.indexer.pool, anvil);
    const { status, body } = await core.get(`/indexer/anvil/events?limit=2&cursor=${first.cursor}`);
    assert.deepEqual([status, body.code, body.details], [409, 'CURSOR_REORGED', { ancestor: 28 }]);
    // A list that began below what was taken back goes on.
    const lower = await list({ limit: 2, to_block: 20 });
    await anvil.reorg(2);
    await anvil.mine();
    await untilIndexed(core.rooms.indexer.pool, anvil);
    assert.equal((await list({ limit: 2, to_block: 20, cursor: lower.cursor })).events.length, 2);
  });
});
