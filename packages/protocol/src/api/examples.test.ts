import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { InstanceContent } from '../content/instance.ts';
import { nodeIdOf } from '../content/network.ts';
import { creditsOf } from '../credit/amounts.ts';
import { chargeOf, holdOf, instanceNeeds, rateOf } from '../credit/costs.ts';
import { DEFAULT_PRICES } from '../credit/prices.ts';
import { recoverPersonalSigner } from '../evm/personal-sign.ts';
import { hostnameOf } from '../hostname.ts';
import { checkImage } from '../images.ts';
import { instanceAddress } from '../instance-address.ts';
import { convertNetworkContent } from '../network-form/convert.ts';
import { provesNode } from '../node-proof.ts';
import { createParser } from '../schema.ts';
import { verifySubmission } from '../submission.ts';
import type { TSchema } from '../type.ts';
import type { NodeProofView } from '../views.ts';
import { type VrfClaim, verifyVrfToken } from '../vrf/token.ts';
import { COMPUTE_API } from './compute/index.ts';
import type { AccountView, HistoryView } from './core/credits.ts';
import { CORE_API } from './core/index.ts';
import { CREDIT_API } from './credit.ts';
import { COMPUTE_EXAMPLES } from './examples/compute.ts';
import { CORE_EXAMPLES } from './examples/core/index.ts';
import { CREDIT_SERVICE_EXAMPLES } from './examples/credit.ts';
import { GATEWAY_EXAMPLES } from './examples/gateway.ts';
import { SCHEDULER_EXAMPLES } from './examples/scheduler.ts';
import { FILE_SIGNATURE, INSTANCE, NETWORK_NOTE, NOTE, PROFILE, PROGRAM } from './examples/signed.ts';
import { STATUS_EXAMPLES } from './examples/status.ts';
import { COMPUTE_NODE, CORE_NODE, FILE, HOSTNAME, IPV6, OWNER, TIME } from './examples/values.ts';
import { GATEWAY_API } from './gateway.ts';
import { type Api, type Example, type Examples, isContent, type Operation } from './operation.ts';
import { SCHEDULER_API } from './scheduler.ts';
import { STATUS_API } from './status.ts';

const files = readdirSync(import.meta.dirname, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.startsWith('examples/'));

/** What a service says of itself, files, a WebSocket, and what is passed on. */
const OF_ITSELF =
  /^\/($|vm\/|status\b|metrics\b|health$|version$|about\/(login|usage|capability)|api\/(status$|docs|ws0))/;
const OF_ITSELF_V0 =
  /^\/api\/v0\/(info|health$|version|sync\/status|openapi|docs|storage\/(raw\/)?:hash$|storage\/limits)/;
const isOfItself = (path: string) => OF_ITSELF.test(path) || OF_ITSELF_V0.test(path);

describe('queries are checked where they matter', () => {
  for (const file of files)
    test(file, async () => {
      const tables = Object.entries((await import(`./${file}`)) as Record<string, Api>).filter(([name]) =>
        name.endsWith('_API'),
      );
      for (const [name, api] of tables) {
        for (const [id, { answers, query, ...route }] of Object.entries(api)) {
          const where = `${name}.${id}`;
          const isRead = route.method === 'GET' && 200 in answers && !isOfItself(route.path);
          assert.ok(query || !isRead, `${where} ignores parameters that it does not have`);
          // Who asks for something that is not there would take everything for what it asked for.
          assert.ok(!query || Object(query).additionalProperties === false, `${where} takes any parameter`);
        }
      }
    });
});

/** Of every service what it answers, and the examples that stand beside it. */
const SERVICES: readonly [name: string, api: Api, examples: Examples][] = [
  ['core', CORE_API, CORE_EXAMPLES],
  ['compute', COMPUTE_API, COMPUTE_EXAMPLES],
  ['scheduler', SCHEDULER_API, SCHEDULER_EXAMPLES],
  ['gateway', GATEWAY_API, GATEWAY_EXAMPLES],
  ['credit', CREDIT_API, CREDIT_SERVICE_EXAMPLES],
  ['status', STATUS_API, STATUS_EXAMPLES],
];

/** They answer in JSON and have no example. */
const WITHOUT: Readonly<Record<string, string>> = {
  getDocument: 'it is the document that examples stand in',
  getDeployedDocument: 'the same',
};

/** The schema of the answer that an example is of: JSON of status 200, or of the lowest. */
function answerOf({ answers }: Operation): TSchema | undefined {
  const form = answers[Math.min(...Object.keys(answers).map(Number))]!;
  return isContent(form) ? form.content['application/json'] : form;
}

/** Newer nodes may add fields that a schema does not name; an example has none of them, so that it does not outlive a field. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inside = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpen =
    'type' in schema &&
    schema.type === 'object' &&
    'properties' in schema &&
    !('additionalProperties' in schema);
  return isOpen ? { ...inside, additionalProperties: false } : inside;
}
const check = (schema: unknown, what: string, value: unknown) =>
  createParser(closed(schema) as TSchema, what)(value);

const defaultsOf = (query: object) =>
  Object.fromEntries(
    Object.entries((query as { properties: Record<string, { default?: unknown }> }).properties).flatMap(
      ([name, schema]) => (schema.default === undefined ? [] : [[name, schema.default]]),
    ),
  );

function checkExample(where: string, operation: Operation, example: Example): void {
  const { params, query, body } = operation;
  assert.ok(params || !example.params, `${where} has no parameters in its path`);
  assert.ok(query || !example.query, `${where} has no query`);
  assert.ok(body || example.body === undefined, `${where} takes no body`);
  if (params) check(params, `${where}: params`, example.params);
  if (query) check(query, `${where}: query`, { ...defaultsOf(query), ...example.query });
  if (body?.kind === 'json' || body?.kind === 'signed') check(body.schema, `${where}: body`, example.body);
  const answer = answerOf(operation);
  if (answer) check(answer, `${where}: answer`, example.answer);
}

describe('examples', () => {
  for (const [name, api, examples] of SERVICES) {
    const none = (ids: string[], what: string) => assert.deepEqual(ids, [], what);

    test(`${name}: every operation that answers in JSON has one, beside its table`, () => {
      const ids = Object.keys(api);
      none(
        ids.filter((id) => answerOf(api[id]!) && !examples[id] && !(id in WITHOUT)),
        'write an example in api/examples',
      );
      none(
        ids.filter((id) => api[id]!.example),
        'clients load tables: an example stands in api/examples',
      );
      none(
        Object.keys(examples).filter((id) => !api[id]),
        'no operation has this id',
      );
    });

    test(`${name}: each fits its operation, and has no field that the contract does not name`, () => {
      for (const [id, example] of Object.entries(examples)) checkExample(`${name}.${id}`, api[id]!, example);
    });
  }
});

describe('what is signed in examples', () => {
  test('messages are signed by their owner, and have the hashes that are answered', () => {
    const signed = Object.entries<Operation>(CORE_API).flatMap(([id, { body }]) =>
      body?.kind === 'signed' ? [CORE_EXAMPLES[id]!] : [],
    );
    assert.ok(signed.length > 15);
    for (const { body, answer } of signed) {
      const { itemHash, sender } = verifySubmission(JSON.stringify(body), TIME);
      assert.equal(sender, OWNER);
      const { item_hash = itemHash } = answer as { readonly item_hash?: string };
      assert.equal(item_hash, itemHash);
    }
    const published = verifySubmission(JSON.stringify({ message: NETWORK_NOTE }), TIME);
    assert.deepEqual([published.itemHash, published.sender], [NETWORK_NOTE.item_hash, OWNER]);
    assert.equal(recoverPersonalSigner(FILE.hash, FILE_SIGNATURE), OWNER);
  });

  test('nodes prove their keys, and an instance has the address that its node gives it', () => {
    for (const [{ id, address }, example] of [
      [CORE_NODE, CORE_EXAMPLES.proveCoreNode!],
      [COMPUTE_NODE, COMPUTE_EXAMPLES.proveNode!],
    ] as const) {
      const { node_id: nodeId, place, challenge } = example.answer as NodeProofView;
      const bytes = new TextEncoder().encode(JSON.stringify(example.answer));
      assert.ok(provesNode(bytes, { nodeId, place, challenge }, address));
      assert.deepEqual([nodeId, nodeIdOf(address)], [id, id]);
    }
    const { network, guest } = instanceAddress(COMPUTE_NODE.prefix, INSTANCE.itemHash);
    assert.deepEqual({ network, guest }, IPV6);
    assert.equal(hostnameOf(INSTANCE.itemHash), HOSTNAME);
  });

  test('random values follow from their proof', () => {
    const { valid, values } = verifyVrfToken(CORE_EXAMPLES.generateRandom!.answer as VrfClaim) as {
      readonly valid: boolean;
      readonly values?: unknown;
    };
    const { body, answer } = CORE_EXAMPLES.verifyRandom!;
    assert.equal(valid, true);
    assert.deepEqual(values, (answer as { readonly values: unknown }).values);
    assert.equal(verifyVrfToken(body as VrfClaim).valid, true);
  });
});

describe('what is counted in examples', () => {
  const told = <T>(id: string) => CORE_EXAMPLES[id]!.answer as T;

  test('credits: what was bought, and what a machine costs in its first hour', () => {
    const { accounts } = told<{ readonly accounts: readonly [AccountView] }>('listAccounts');
    const { credit_history } = told<{ readonly credit_history: readonly [HistoryView] }>('listCreditHistory');
    const [account] = accounts;
    const rate = rateOf(instanceNeeds(INSTANCE.body.message.content), DEFAULT_PRICES.instance);
    const used = chargeOf(rate, TIME, account.time);
    const left = BigInt(credit_history[0].amount_nano) - used;
    const [balance, hold] = [creditsOf(left), creditsOf(holdOf(rate))];
    const counted = {
      credit_balance: Number(balance),
      credit_balance_nano: String(left),
      credit_rate_nano: String(rate),
      credit_hold: Number(hold),
      credit_available: Number(balance - hold),
      runs_out_at: account.time + Number(left / rate),
    };
    assert.deepEqual(account, { ...account, ...counted });
    const ofAddress = told<AccountView>('getBalance');
    assert.deepEqual(ofAddress, { ...ofAddress, ...account });

    const consumed = Number(creditsOf(used));
    const costs = told<{
      readonly summary: { readonly total_consumed_credits: number };
      readonly resources: readonly [object];
    }>('listCosts');
    assert.equal(costs.summary.total_consumed_credits, consumed);
    const exact = { consumed_credits: consumed, consumed_credits_nano: String(used) };
    for (const told_ of [costs.resources[0], told<object>('getConsumedCredits')])
      assert.deepEqual(told_, { ...told_, ...exact });
    const summary = told<{ readonly total_amount: number; readonly total_outgoing: number }>(
      'getCreditSummary',
    );
    assert.deepEqual(
      [summary.total_amount, summary.total_outgoing],
      [Number(balance), Number(creditsOf(-used))],
    );
  });

  test('channels of an owner are those of the messages that it is said to have sent', () => {
    const used = [INSTANCE, NOTE, PROFILE, PROGRAM].map(({ body }) => body.message.channel);
    const channels = [...new Set(used)].sort();
    assert.deepEqual(told<{ readonly channels: unknown }>('listAddressChannels').channels, channels);
    assert.deepEqual(told<{ readonly channels: unknown }>('listChannels').channels, channels);
  });
});

test('an instance that is planned has a content that nodes take', () => {
  for (const { body } of [CORE_EXAMPLES.estimateInstanceCost!, COMPUTE_EXAMPLES.reserveResources!]) {
    const { content } = convertNetworkContent('INSTANCE', '0'.repeat(64), body);
    const { cpu, memory, disk, image } = content as InstanceContent;
    checkImage(image);
    assert.deepEqual([cpu, memory, disk], [1, 2_048, 20]);
  }
});
