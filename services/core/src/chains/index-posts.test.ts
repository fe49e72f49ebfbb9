import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Signer } from '@skerry/client';
import { NO_NETWORKS } from '@skerry/indexer';
import {
  Anvil,
  compareWithChain,
  NETWORK,
  networkSettings,
  OTHER,
  TOKEN,
  TRANSFER,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from '@skerry/indexer/testing';
import { until } from '@skerry/kit/testing/until';
import { CREDIT_CHANNEL, CREDIT_POST, sha256Hex } from '@skerry/protocol';
import { ERASE_AFTER_MS, eraseForgotten } from '../intake/erase.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { listIndexRequests, noteIndexRequest } from './index-requests.ts';

const PING = 'event Ping(uint256 indexed id)';
const PING_TOPIC = '0x48257dc961b6f792c2b78a080dacfed693b660960a702de21cee364e20270e2f';

test('contracts come and go by signed messages; only what was not read is read', async () => {
  await using anvil = await Anvil.start();
  for (const contract of [TOKEN, OTHER]) await anvil.setCode(contract);
  for (let block = 0; block < 50; block++) {
    await anvil.emit(OTHER, [TRANSFER_TOPIC, word(1), word(2)], word(block));
    await anvil.emit(OTHER, [PING_TOPIC, word(block)], '0x');
    await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(1), word(2)], word(block));
    await anvil.mine();
  }
  const network = networkSettings([anvil.url], { contracts: [] });
  await using core = await createTestCore({
    indexer: {
      ...{ networks: [network], watchesPerOwner: 1, watchesMax: 2, exemptOwners: [], standingCredits: 0 },
      decodeThreads: 1,
    },
  });
  const { indexer, db, events } = core.rooms;
  const { pool } = indexer;
  type Signer = (typeof signers)['alice'];
  const send = async (signer: Signer, type: string, content: Record<string, unknown>): Promise<string> => {
    const answer = await core.send(signer, { type, content });
    assert.equal(answer.status, 200);
    await core.rooms.pipeline.idle();
    const last = Number(await events.lastCursor());
    const cursorOf = async () =>
      Number((await pool.query('select cursor from indexer_posts')).rows[0]?.cursor ?? 0);
    await until('it is read', cursorOf, (cursor) => cursor >= last);
    return answer.body.item_hash;
  };
  const ask = (signer: Signer, content: Record<string, unknown>) =>
    send(signer, 'POST', {
      type: 'net-index',
      content: { network: NETWORK, contract: OTHER, ...content },
    });
  /** @returns why it was refused */
  const wish = async (signer: Signer, content: Record<string, unknown>): Promise<string | undefined> => {
    const hash = await ask(signer, content);
    const { body } = await core.get(`/addresses/${signer.address}/index_requests`);
    const request = body.requests.find(({ item_hash: one }: { item_hash: string }) => one === hash);
    assert.ok(request);
    return request.reason?.code;
  };
  const indexed = async () => {
    await until(
      'there is something to read',
      async () => (await pool.query('select from indexer_scans')).rowCount !== 0,
    );
    await untilIndexed(pool, anvil);
    return compareWithChain(pool, anvil);
  };
  assert.equal(await wish(signers.alice, { action: 'add', abi: [TRANSFER], start_block: 30 }), undefined);
  assert.equal(await indexed(), 21);
  // An earlier start, then another ABI: neither reads what is there again.
  await wish(signers.bob, { action: 'add', abi: [TRANSFER], start_block: 11 });
  assert.equal(await indexed(), 40);
  await wish(signers.bob, { action: 'add', abi: [PING], start_block: 41 });
  assert.equal(await indexed(), 50);
  await wish(signers.bob, { action: 'add', abi: [PING], start_block: 41 });
  // One of each, however often they declare.
  assert.equal((await pool.query('select from indexer_abis')).rowCount, 2);
  // One contract for one owner, two for all; a malformed ABI; an unknown network.
  const wanted = { action: 'add', contract: TOKEN, abi: [TRANSFER] };
  assert.equal(await wish(signers.alice, wanted), 'WATCH_LIMIT_REACHED');
  assert.equal(await wish(signers.node, wanted), 'WATCH_LIMIT_REACHED');
  assert.equal(await wish(signers.node, { action: 'add', abi: ['event (('] }), 'INVALID_ABI');
  assert.equal(await wish(signers.node, { action: 'add' }), 'INVALID_CONTENT');
  assert.equal(
    await wish(signers.node, { action: 'add', abi: [PING], network: 'none' }),
    'NETWORK_NOT_FOUND',
  );
  // One that was read before the node's settings were changed.
  await pool.query("insert into indexer_networks (name, chain_id) values ('left', 5)");
  assert.equal(
    await wish(signers.node, { action: 'add', abi: [PING], network: 'left' }),
    'NETWORK_NOT_FOUND',
  );
  assert.deepEqual(
    (await core.get('/indexer')).body.networks.map((one: { state: string }) => one.state),
    ['live', 'not_read'],
  );
  assert.equal(await wish(signers.node, { action: 'remove' }), 'WATCH_NOT_FOUND');
  assert.equal((await pool.query('select from indexer_watches')).rowCount, 2);

  // What was taken back, and has lost what it said, holds up nothing that comes after it.
  const before = await events.lastCursor();
  const forgotten = await ask(signers.node, { action: 'add', abi: [PING], network: 'none' });
  await send(signers.node, 'FORGET', { hashes: [forgotten] });
  await eraseForgotten(db, Date.now() + 2 * ERASE_AFTER_MS);
  await pool.query('update indexer_posts set cursor = $1', [before]);

  assert.equal(await wish(signers.alice, { action: 'remove' }), undefined);
  assert.equal(await indexed(), 50);
  await wish(signers.bob, { action: 'remove' });
  await until(
    'its rows are deleted',
    async () => (await pool.query('select from indexer_contracts')).rowCount === 0,
  );
  assert.equal((await pool.query('select from indexer_events_n1')).rowCount, 0);
  assert.equal((await pool.query('select from indexer_spans')).rowCount, 0);

  // What became of requests is kept within bounds: nobody's push out another's, and all of them are gone a day later.
  const done = (itemHash: string, settledMs: number) => ({ itemHash, refusal: null, settledMs });
  const nowMs = Date.now();
  for (let n = 0; n <= 100; n++) await noteIndexRequest(pool, 'mallory', done(`m${n}`, nowMs + n));
  const kept = await listIndexRequests(pool, 'mallory');
  assert.deepEqual([kept.length, kept[0]!.itemHash, kept.at(-1)!.itemHash], [100, 'm100', 'm1']);
  assert.ok((await listIndexRequests(pool, signers.alice.address)).length > 0);
  await noteIndexRequest(pool, 'mallory', done('late', nowMs + 25 * 3_600_000));
  assert.equal((await pool.query('select from indexer_requests')).rowCount, 1);
});

test('a request at which the node fails, or whose declaration is too long, holds up none behind it', async () => {
  const network = networkSettings(['http://127.0.0.1:9/'], { contracts: [] });
  await using core = await createTestCore({
    indexer: {
      ...{ networks: [network], watchesPerOwner: 9, watchesMax: 9, exemptOwners: [], standingCredits: 0 },
      decodeThreads: 0,
    },
  });
  const { pool } = core.rooms.indexer;
  // Whatever it is that nobody foresaw.
  await pool.query("alter table indexer_event_types add check (name <> 'Broken')");
  const inputs = Array.from({ length: 60 }, (_, index) => ({
    name: `a${sha256Hex(String(index)).slice(0, 39)}`,
    type: 'uint256',
  }));
  const abis = [[{ type: 'event', name: 'Long', inputs }], ['event Broken()'], [PING]];
  const hashes: string[] = [];
  for (const abi of abis) {
    const content = { action: 'add', network: NETWORK, contract: OTHER, abi };
    const { body } = await core.send(signers.alice, {
      type: 'POST',
      content: { type: 'net-index', content },
    });
    hashes.push(body.item_hash);
  }
  const done = await until(
    'all are settled',
    () => listIndexRequests(pool, signers.alice.address),
    ({ length }) => length === abis.length,
  );
  const codeOf = (hash: string) => done.find(({ itemHash }) => itemHash === hash)?.refusal?.code;
  assert.deepEqual(hashes.map(codeOf), ['INVALID_ABI', 'INTERNAL', undefined]);
  assert.equal((await pool.query('select from indexer_watches')).rowCount, 1);

  // A wish that was done is not read again because of one behind it that cannot be had yet: there would be nothing to take back.
  await pool.query(`create sequence refused;
    create function refuse() returns trigger language plpgsql as
      $$ begin perform nextval('refused'); raise exception 'not now' using errcode = '57P03'; end $$;
    create trigger refuse before insert on indexer_event_types for each row
      when (new.name = 'Second') execute function refuse()`);
  const wish = async (signer: (typeof signers)['alice'], said: object) => {
    const content = { network: NETWORK, contract: OTHER, ...said };
    const { body } = await core.send(signer, { type: 'POST', content: { type: 'net-index', content } });
    return body.item_hash as string;
  };
  const holder = await pool.connect();
  let taken: string;
  try {
    // Both are read together.
    await holder.query('begin; lock table indexer_posts');
    taken = await wish(signers.alice, { action: 'remove' });
    await wish(signers.bob, { action: 'add', abi: ['event Second()'] });
    await core.rooms.pipeline.idle();
  } finally {
    await holder.query('commit');
    holder.release();
  }
  await until(
    'the second one was refused',
    async () => (await pool.query('select is_called from refused')).rows[0].is_called,
  );
  await pool.query('drop trigger refuse on indexer_event_types');
  await until(
    'it is had',
    () => listIndexRequests(pool, signers.bob.address),
    ({ length }) => length === 1,
  );
  const removed = (await listIndexRequests(pool, signers.alice.address)).find(
    ({ itemHash }) => itemHash === taken,
  );
  assert.equal(removed?.refusal, null);
});

/** Settings of a node on which all owners together can have four contracts indexed. */
const forFour = (standingCredits: number) => ({
  networks: [networkSettings(['http://127.0.0.1:9/'], { contracts: [] })],
  ...{ watchesPerOwner: 9, watchesMax: 4, exemptOwners: [], standingCredits },
  decodeThreads: 0,
});

/** Asks for a contract by a signed message. Resolves with the code by which it was refused. */
const askerOf = (core: TestCore) => async (signer: Signer, contract: string) => {
  const content = { action: 'add', network: NETWORK, contract, abi: [PING] };
  const { body } = await core.send(signer, { type: 'POST', content: { type: 'net-index', content } });
  const requests = await until(
    'it is settled',
    () => listIndexRequests(core.rooms.indexer.pool, signer.address),
    (all) => all.some(({ itemHash }) => itemHash === body.item_hash),
  );
  return requests.find(({ itemHash }) => itemHash === body.item_hash)!.refusal?.code;
};

test('strangers have half of what there is for all: whoever has credit finds room beside them', async () => {
  const standingCredits = 5;
  await using core = await createTestCore({ indexer: forFour(standingCredits) });
  const ask = askerOf(core);
  const grant = async (amount: number) => {
    const credits = [{ address: signers.bob.address, amount, ref: `r${amount}` }];
    const content = { type: CREDIT_POST.distribution, content: { distribution: { credits } } };
    await core.send(signers.credit, { type: 'POST', channel: CREDIT_CHANNEL, content });
    await core.rooms.pipeline.idle();
  };
  for (const contract of [TOKEN, OTHER]) assert.equal(await ask(signers.alice, contract), undefined);
  assert.equal(await ask(signers.bob, TOKEN), 'WATCH_LIMIT_REACHED');
  await grant(standingCredits - 1);
  assert.equal(await ask(signers.bob, TOKEN), 'WATCH_LIMIT_REACHED');
  await grant(1);
  for (const contract of [TOKEN, OTHER]) assert.equal(await ask(signers.bob, contract), undefined);
});

test('where the node trusts nobody who gives credit, strangers have all there is by default', async () => {
  const trust = { schedulers: [], scoringPublishers: [], creditPublishers: [], knownCoreNodes: [] };
  await using core = await createTestCore({
    indexer: forFour(NO_NETWORKS.standingCredits),
    trust: { ...trust, creditEnforcement: false },
  });
  const ask = askerOf(core);
  for (const signer of [signers.alice, signers.bob])
    for (const contract of [TOKEN, OTHER]) assert.equal(await ask(signer, contract), undefined);
  assert.equal(await ask(signers.node, TOKEN), 'WATCH_LIMIT_REACHED');
});
