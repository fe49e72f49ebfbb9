import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import type { World } from '../world.ts';

const KEY = 'compat-key';

const send = (world: World, key: string, content: object) =>
  world.client('AggregateMessageClient').send({
    account: world.account,
    channel: world.channel,
    key,
    content,
    sync: true,
  });

export const aggregateCalls: readonly Call[] = [
  {
    name: 'aggregate.send',
    async run(world) {
      const { item_hash } = await send(world, KEY, { a: 1, b: { c: 2 } });
      world.note('aggregate', item_hash);
    },
  },
  {
    name: 'aggregate.send, more fields',
    async run(world) {
      await send(world, KEY, { b: null, d: [1] });
      const data = await world.client('AggregateMessageClient').get({ address: world.account.address });
      assert.deepEqual(data[KEY], { a: 1, b: null, d: [1] });
    },
  },
  {
    name: 'aggregate.get, by keys',
    async run(world) {
      await send(world, 'compat-other', { x: true });
      const { address } = world.account;
      const data = await world.client('AggregateMessageClient').get({ address, keys: [KEY] });
      assert.deepEqual(Object.keys(data), [KEY]);
    },
  },
  {
    name: 'aggregate.get, of an address without any',
    async run(world) {
      const { account } = world.sdk.load('ethereum').newAccount();
      await assert.rejects(
        () => world.client('AggregateMessageClient').get({ address: account.address }),
        (error: Error & { response?: { status: number } }) =>
          error.name.includes('NotFound') ||
          error.message.includes('aggregate') ||
          error.response?.status === 404,
      );
    },
  },
  {
    name: 'http.fetchAggregate',
    async run(world) {
      const value = await world.client('AlephHttpClient').fetchAggregate(world.account.address, KEY);
      assert.equal(value.a, 1);
    },
  },
  {
    name: 'http.fetchAggregates',
    async run(world) {
      const values = await world.client('AlephHttpClient').fetchAggregates(world.account.address);
      assert.deepEqual(Object.keys(values).sort(), [KEY, 'compat-other']);
    },
  },
  {
    name: 'aggregate.getAggregates, filters and order',
    async run(world) {
      const { aggregates, pagination_total, pagination_item } = await world
        .client('AggregateMessageClient')
        .getAggregates({
          keys: [KEY, 'compat-other'],
          addresses: world.account.address,
          sortBy: 'last_modified',
          sortOrder: 1,
          pagination: 1,
          page: 1,
        });
      assert.deepEqual(
        [aggregates.length, aggregates[0].key, pagination_total, pagination_item],
        [1, KEY, 2, 'aggregates'],
      );
      assert.equal(aggregates[0].address, world.account.address);
    },
  },
];
