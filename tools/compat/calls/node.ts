import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import type { Loose } from '../sdk.ts';
import type { World } from '../world.ts';

const asks = (
  client: string,
  method: string,
  args: (world: World) => readonly unknown[],
  check: (answer: Loose, world: World) => void,
): Call => ({
  name: `${client.replace('Client', '').toLowerCase()}.${method}`,
  async run(world) {
    check(await world.client(client)[method](...args(world)), world);
  },
});

const address = ({ account }: World) => account.address as string;

/** Credits: nothing is bought in this network, so that amounts are zero and the form is what counts. */
const balanceCalls: readonly Call[] = [
  asks(
    'BalanceClient',
    'getBalance',
    (world) => [address(world)],
    (answer, world) => {
      assert.deepEqual([answer.address, answer.balance, answer.locked_amount], [address(world), 0, 0]);
      assert.equal(typeof answer.credit_balance, 'number');
    },
  ),
  asks(
    'BalanceClient',
    'getBalance',
    (world) => [address(world), { chain: 'ETH', includeCreditDetails: true }],
    (answer) => assert.ok(Array.isArray(answer.credit_balance_details)),
  ),
  asks(
    'BalanceClient',
    'getBalances',
    () => [{ minBalance: 1, chains: ['ETH'] }],
    ({ balances }) => assert.ok(Array.isArray(balances)),
  ),
  asks(
    'BalanceClient',
    'getCreditBalances',
    () => [{ pagination: 10, page: 1 }],
    (answer) => assert.ok(Array.isArray(answer.credit_balances)),
  ),
  {
    name: 'balance.getCreditHistory',
    async run(world) {
      // Deployed nodes have no page where there is nothing.
      await world
        .client('BalanceClient')
        .getCreditHistory(address(world), { pagination: 10, page: 1 })
        .then(
          ({ credit_history }: Loose) => assert.deepEqual(credit_history, []),
          (error: Loose) => assert.equal(error.response?.status, 404, String(error)),
        );
    },
  },
  asks(
    'BalanceClient',
    'getConsumedCredits',
    (world) => [world.noted('instance')],
    (answer) => assert.equal(typeof answer.consumed_credits, 'number'),
  ),
];

const addressCalls: readonly Call[] = [
  asks(
    'AddressClient',
    'getFiles',
    (world) => [address(world), { sortOrder: -1 }],
    (answer, world) => {
      assert.equal(answer.address, address(world));
      assert.ok(answer.files.some((file: Loose) => file.file_hash === world.noted('file')));
    },
  ),
  asks(
    'AddressClient',
    'getPostTypes',
    (world) => [address(world)],
    ({ post_types }) => assert.ok(post_types.includes('compat-note')),
  ),
  asks(
    'AddressClient',
    'getChannels',
    (world) => [address(world)],
    ({ channels }, world) => assert.ok(channels.includes(world.channel)),
  ),
  asks(
    'AddressClient',
    'getStats',
    (world) => [{ addresses: [address(world)] }],
    ({ data }, world) => assert.ok(data[address(world)].messages > 0),
  ),
  asks(
    'AddressClient',
    'getStatsV1',
    (world) => [{ addressContains: address(world).slice(0, 12), sortBy: 'messages', sortOrder: -1 }],
    ({ data, pagination_item }, world) => {
      assert.equal(pagination_item, 'addresses');
      assert.ok(JSON.stringify(data).includes(address(world)));
    },
  ),
];

export const nodeCalls: readonly Call[] = [
  ...balanceCalls,
  ...addressCalls,
  asks(
    'NodeClient',
    'getPublicInfo',
    () => [],
    (answer) => assert.ok(Array.isArray(answer.node_multi_addresses)),
  ),
  asks(
    'NodeClient',
    'listChannels',
    () => [],
    ({ channels }, world) => assert.ok(channels.includes(world.channel)),
  ),
  asks(
    'NodeClient',
    'getVersion',
    () => [],
    ({ version }) => assert.match(version, /^\d/),
  ),
  {
    name: 'price.recalculate',
    theirs: 'it is for the operator of a node, by a token that the SDK does not send',
    run: async (world) => void (await world.client('PriceClient').recalculate()),
  },
];
