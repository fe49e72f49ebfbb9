import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import type { Loose } from '../sdk.ts';
import type { World } from '../world.ts';
import { POST_TYPE, TAG } from './posts.ts';

const PUBLIC_HOST = 'the SDK asks the public network, whatever host it was given';

const getAll = (world: World, query: object) =>
  world.client('BaseMessageClient').getAll({ channels: [world.channel], pagination: 100, ...query });

interface Listed {
  readonly messages: readonly Loose[];
}

/** A list that is asked for by one filter, checked on every message, and not empty. */
const filters = (
  name: string,
  query: (world: World) => object,
  check: (list: Listed, world: World) => void,
): Call => ({
  name: `message.getAll, ${name}`,
  async run(world) {
    const list = (await getAll(world, query(world))) as Listed;
    assert.ok(list.messages.length > 0, 'nothing was found');
    check(list, world);
  },
});

/** Every message of the list has this, and no other. */
const all =
  (read: (message: Loose) => unknown, expected: (world: World) => unknown) =>
  (list: Listed, world: World) => {
    for (const message of list.messages) assert.deepEqual(read(message), expected(world));
  };

const only =
  (name: string) =>
  ({ messages }: Listed, world: World) =>
    assert.deepEqual(
      messages.map(({ item_hash }) => item_hash),
      [world.noted(name)],
    );

const filterCalls: readonly Call[] = [
  filters(
    'channels',
    () => ({}),
    (list, world) => assert.ok(list.messages.every((one) => one.channel === world.channel)),
  ),
  filters(
    'addresses',
    ({ account }) => ({ addresses: [account.address] }),
    all(
      (one) => one.sender,
      ({ account }) => account.address,
    ),
  ),
  filters(
    'chains',
    () => ({ chains: ['ETH'] }),
    all(
      (one) => one.chain,
      () => 'ETH',
    ),
  ),
  filters('hashes', (world) => ({ hashes: [world.noted('post')] }), only('post')),
  filters('refs', () => ({ refs: ['compat-ref'] }), only('post')),
  filters('tags', () => ({ tags: [TAG], messageTypes: ['POST'], contentTypes: [POST_TYPE] }), only('post')),
  filters('contentTypes', () => ({ contentTypes: [POST_TYPE] }), only('post')),
  filters(
    'contentKeys',
    () => ({ contentKeys: ['compat-key'] }),
    all(
      (one) => one.content.key,
      () => 'compat-key',
    ),
  ),
  filters(
    'messageTypes',
    () => ({ messageTypes: ['AGGREGATE'] }),
    all(
      (one) => one.type,
      () => 'AGGREGATE',
    ),
  ),
  filters(
    'startDate and endDate',
    () => ({ startDate: new Date(Date.now() - 3_600_000), endDate: new Date(Date.now() + 60_000) }),
    ({ messages }) => assert.ok(messages.every(({ time }) => time > Date.now() / 1000 - 3_600)),
  ),
];

const readCalls: readonly Call[] = [
  {
    name: 'message.get',
    async run(world) {
      const message = await world.client('BaseMessageClient').get({ hash: world.noted('post') });
      assert.deepEqual(
        [message.item_hash, message.type, message.sender, message.content.content.text],
        [world.noted('post'), 'POST', world.account.address, 'the first'],
      );
    },
  },
  {
    name: 'message.get, with a type that it has not',
    run: (world) =>
      assert.rejects(
        () => world.client('BaseMessageClient').get({ hash: world.noted('post'), messageType: 'STORE' }),
        TypeError,
      ),
  },
  {
    name: 'message.get, unknown hash',
    run: (world) =>
      assert.rejects(() => world.client('BaseMessageClient').get({ hash: '0'.repeat(64) }), /No such hash/),
  },
  {
    name: 'message.getStatus',
    async run(world) {
      const { status, item_hash, reception_time } = await world
        .client('BaseMessageClient')
        .getStatus(world.noted('post'));
      assert.deepEqual([status, item_hash], ['processed', world.noted('post')]);
      assert.ok(!Number.isNaN(Date.parse(reception_time)));
    },
  },
  {
    name: 'message.getContent',
    async run(world) {
      const value = await world.client('BaseMessageClient').getContent(world.noted('post'));
      assert.equal(value.text, 'the first');
    },
  },
  {
    name: 'message.getError',
    run: async (world) => void (await world.client('BaseMessageClient').getError(world.noted('post'))),
    theirs: PUBLIC_HOST,
  },
];

const pageCalls: readonly Call[] = [
  {
    name: 'message.getAll, pages',
    async run(world) {
      const one = await getAll(world, { pagination: 2, page: 1 });
      const two = await getAll(world, { pagination: 2, page: 2 });
      assert.deepEqual(
        [one.pagination_per_page, one.pagination_page, two.pagination_page, one.pagination_item],
        [2, 1, 2, 'messages'],
      );
      assert.notEqual(one.messages[0].item_hash, two.messages[0].item_hash);
    },
  },
  {
    name: 'message.getAll, everything (pagination 0)',
    async run(world) {
      const { messages, pagination_total } = await getAll(world, { pagination: 0 });
      assert.equal(messages.length, pagination_total);
    },
  },
  {
    name: 'message.getAll, pages of 1000',
    async run(world) {
      const { messages, pagination_total } = await getAll(world, { pagination: 1_000 });
      assert.equal(messages.length, pagination_total);
    },
  },
  {
    name: 'message.getCursor',
    async run(world) {
      const { messages, next_cursor } = await world
        .client('BaseMessageClient')
        .getCursor({ channels: [world.channel], pagination: 2 });
      assert.deepEqual([messages.length, typeof next_cursor], [2, 'string']);
    },
  },
  {
    name: 'message.getAsyncIterator',
    async run(world) {
      const client = world.client('BaseMessageClient');
      const seen = new Set<string>();
      for await (const { item_hash } of client.getAsyncIterator({
        channels: [world.channel],
        pagination: 2,
      }))
        seen.add(item_hash);
      assert.equal(seen.size, (await getAll(world, {})).pagination_total);
    },
  },
];

const forgetCalls: readonly Call[] = [
  {
    name: 'forget.send',
    async run(world) {
      const { item_hash } = await world.client('ForgetMessageClient').send({
        account: world.account,
        channel: world.channel,
        hashes: [world.noted('second post')],
        reason: 'compat',
        sync: true,
      });
      world.note('forget', item_hash);
    },
  },
  {
    name: 'message.get, forgotten',
    run: (world) =>
      assert.rejects(
        () => world.client('BaseMessageClient').get({ hash: world.noted('second post') }),
        (error: Error) => error.message.includes(`forgotten by ${world.noted('forget')}`),
      ),
  },
  {
    name: 'message.getStatus, forgotten',
    async run(world) {
      const { status } = await world.client('BaseMessageClient').getStatus(world.noted('second post'));
      assert.equal(status, 'forgotten');
    },
  },
];

export const messageCalls: readonly Call[] = [...filterCalls, ...readCalls, ...pageCalls, ...forgetCalls];
