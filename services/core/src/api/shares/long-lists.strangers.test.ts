import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { CORE_API } from '@skerry/protocol/api/core/index';
import type { Operation } from '@skerry/protocol/api/operation';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { tooLong, watchListTimes } from '../../testing/list-times.ts';
import { limitsExcept } from '../../testing/strangers.ts';

const OWN = '127.0.0.9';
const SLOW = '127.0.0.2';
/** Milliseconds of the database: of a list that has its turn, and of one that has none. */
const [IN_TURN, CHEAP] = [5_000, 250];

const { address } = signers.alice;
const DEEP = 'page=600';
/** A node, or a message of a file, that nobody knows. */
const UNKNOWN = 'ab'.repeat(32);
const own = (what: string) => `/api/v0/addresses/${address}/${what}`;

/** What each operation is asked, so that it may take long. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  listMessages: [`/api/v0/messages?${DEEP}`],
  listNetworkMessages: [
    '/api/v0/messages.json?startDate=1&endDate=2000000000',
    '/api/v0/messages.json?sortBy=tx-time',
  ],
  listNetworkMessagesOfPage: ['/api/v0/messages/page/600.json'],
  listMessageHashes: [`/api/v0/messages/hashes?${DEEP}`],
  listNetworkPosts: ['/api/v0/posts.json', '/api/v0/posts.json?sortBy=tx-time'],
  listNetworkPostsOfPage: ['/api/v0/posts/page/2.json'],
  listBriefPosts: ['/api/v1/posts.json'],
  listBriefPostsOfPage: ['/api/v1/posts/page/2.json'],
  getAggregate: [`/api/v0/aggregates/${address}/many`],
  listOwnedAggregates: [`/api/v0/aggregates/${address}.json`],
  listAggregates: [
    '/api/v0/aggregates?content.fields=name',
    `/api/v0/aggregates?${DEEP}`,
    // Whose aggregates of many fields are read in full.
    `/api/v0/aggregates?address=${address}`,
    '/api/v0/aggregates?key=many',
  ],
  listNetworkAggregates: ['/api/v0/aggregates.json?sortBy=creation_time'],
  listInstances: [`/api/v0/instances?${DEEP}`],
  listProgramsOnMessage: ['/api/v0/programs/on/message'],
  listAddressFiles: [own('files')],
  listAddressPostTypes: [own('post_types')],
  listAddressChannels: [own('channels')],
  getAddressStats: ['/api/v0/addresses/stats.json'],
  listAddressStats: ['/api/v1/addresses/stats.json'],
  listChannels: ['/api/v0/channels/list.json'],
  listReceived: [`/api/v0/authorizations/received/${address}.json`],
  getBalance: [own('balance')],
  listCreditHistory: [own('credit_history')],
  getCreditSummary: [own('credit_history/summary')],
  listCreditBalances: ['/api/v0/credit_balances'],
  listCharges: ['/api/v0/credits/charges?kind=instance'],
  listAccounts: ['/api/v0/credits/accounts'],
  listCosts: [`/api/v0/costs?address=${address}`],
  getCoreMeasurements: [`/api/v0/core/${UNKNOWN}/metrics?start_date=1`],
  getComputeMeasurements: [`/api/v0/compute/${UNKNOWN}/metrics?start_date=1`],
  getCoreHistory: [`/api/v0/core/${UNKNOWN}/metrics/history`],
  getComputeHistory: [`/api/v0/compute/${UNKNOWN}/metrics/history`],
  getFileByRef: [`/api/v0/storage/by-ref/${UNKNOWN}`],
  getFileByName: [`/api/v0/storage/by-ref/${address}/name`],
  countFileMessages: [`/api/v0/storage/count/${UNKNOWN}`],
  listChainEvents: ['/api/v0/indexer/none/events'],
  listChainTransactions: ['/api/v0/indexer/none/transactions'],
};
/** The first is read once a second for all, and the other one is a WebSocket. */
const NO_LONG_LISTS = ['listAssignedPrograms', 'watchMessages'];
/** More than an aggregate of one message has. */
const FIELDS = 1_001;

describe('lists that take long', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore({ settings: { limits: limitsExcept(OWN) }, connectionsMax: 10 });
    url = await core.listen();
    await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: 1 } });
    await core.send(signers.alice, { type: 'AGGREGATE', content: { key: 'many', content: { first: 1 } } });
    // As several messages would have made it.
    await sql`insert into aggregate_entries (owner, key, field, value, "time", item_hash)
      select owner, key, 'field ' || n, '1', "time", item_hash from aggregates, generate_series(2, ${FIELDS}::int) n`.execute(
      core.rooms.db,
    );
  });
  after(() => core[Symbol.asyncDispose]());

  async function ask(localAddress: string, path: string, body?: Buffer): Promise<string> {
    const headers = body ? { 'content-type': 'application/json', 'content-length': body.length } : {};
    const asked = request(url + path, { localAddress, agent: false, headers, method: body ? 'POST' : 'GET' });
    asked.end(body);
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    const { statusCode: status } = response;
    return status! < 400 ? `${status}` : `${status} ${JSON.parse(Buffer.concat(chunks).toString()).code}`;
  }

  /** As good as lists that take for ever, until they are let go on. */
  function slowLists() {
    const end = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const lists = { isSlow: true, running: 0 };
    const watching = watchListTimes(core.rooms.indexer.pool, async (ms) => {
      if (!lists.isSlow) return;
      if (ms === CHEAP) throw tooLong();
      assert.ok(++lists.running <= 2, 'more than two take long');
      if (lists.running === 2) begun.resolve();
      await end.promise;
      lists.running--;
    });
    return {
      lists,
      /** Two have their turn. */
      begun: begun.promise,
      end: () => end.resolve(),
      [Symbol.dispose]() {
        end.resolve();
        watching[Symbol.dispose]();
      },
    };
  }

  test('a client has two of them at once, whatever they are of, and eight that wait; others are served', async () => {
    using slow = slowLists();
    const paths = ['/api/v0/posts.json', '/api/v0/indexer/none/events', '/api/v0/channels/list.json'];
    const asked = Array.from({ length: 11 }, (_, n) => ask(SLOW, paths[n % paths.length]!));
    assert.equal(await Promise.race(asked), '429 RATE_LIMITED');
    slow.lists.isSlow = false;
    for (const path of paths)
      assert.match(await ask('127.0.0.3', path), /^(200|404 (NETWORK|NODE|FILE)_NOT_FOUND)$/);
    slow.end();
    const refused = (await Promise.all(asked)).filter((answer) => !/^(200|404)/.test(answer));
    assert.deepEqual(refused, ['429 RATE_LIMITED']);
  });

  test('a client that has its turns is answered what is cheap at once, of each list that there is', async (t) => {
    // However slow the machine is, they are cheap.
    const now = performance.now.bind(performance);
    t.mock.method(performance, 'now', () => now() / 1_000);
    const costly = Object.entries<Operation>(CORE_API).filter(
      ([, { method, errors }]) => method === 'GET' && errors.includes('LIST_TOO_COSTLY'),
    );
    const known = [...Object.keys(LISTS), ...NO_LONG_LISTS];
    assert.deepEqual(costly.map(([name]) => name).sort(), known.sort());
    using slow = slowLists();
    const taken = [ask(SLOW, '/api/v0/posts.json'), ask(SLOW, '/api/v0/posts.json')];
    await slow.begun;
    slow.lists.isSlow = false;
    const told: number[] = [];
    using _watched = watchListTimes(core.rooms.indexer.pool, (ms) => void told.push(ms));
    for (const path of Object.values(LISTS).flat()) {
      for (const [from, ms] of [
        [SLOW, CHEAP],
        ['127.0.0.3', IN_TURN],
      ] as const) {
        told.length = 0;
        assert.match(await ask(from, path), /^(200|404 (NETWORK|NODE|FILE)_NOT_FOUND)$/, path);
        assert.deepEqual([...new Set(told)], [ms], path);
      }
    }
    slow.end();
    assert.deepEqual(await Promise.all(taken), ['200', '200']);
  });

  test('deliveries of one state are a list that may take long', async () => {
    using slow = slowLists();
    const taken = [ask(SLOW, '/api/v0/posts.json'), ask(SLOW, '/api/v0/posts.json')];
    await slow.begun;
    const webhook = 'ab'.repeat(32);
    const list = (n: number) => {
      const content = { action: 'deliveries', webhook_id: webhook, state: 'dead' };
      const { body } = signMessage({ type: 'WEBHOOK', content, nonce: `${n}` }, signers.alice);
      return ask(SLOW, `/api/v0/webhooks/${webhook}/deliveries`, Buffer.from(body));
    };
    const asked = Array.from({ length: 9 }, (_, n) => list(n));
    assert.equal(await Promise.race(asked), '429 RATE_LIMITED');
    slow.end();
    const others = (await Promise.all(asked)).filter((answer) => answer === '404 WEBHOOK_NOT_FOUND');
    assert.deepEqual([others.length, await Promise.all(taken)], [8, ['200', '200']]);
  });
});
