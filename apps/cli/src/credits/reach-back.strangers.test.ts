import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { call } from '@skerry/client/call';
import { LIMITS } from '@skerry/protocol';
import { COSTS_API } from '@skerry/protocol/api/core/costs';
import { startCore } from '../testing/core.ts';
import { skerryHere, succeedHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

const pricesOf = (unit: number) => JSON.stringify({ instance: { compute_unit: unit } });
const instance = {
  ...{ name: 'cheap', image: 'debian:12', cpu: 1, memory: 512, disk: 4 },
  ssh_key: `ssh-ed25519 ${'A'.repeat(68)} a@b`,
};

test('who dates a message back to the prices before has them, unless the new ones reach as far back', async () => {
  const [publisher, stranger] = [generatePrivateKey(), generatePrivateKey()];
  const [trusted, buyer] = [createSigner(publisher), createSigner(stranger)];
  await using home = await createTestDir();
  await using core = await startCore(home.path, { SKERRY_CORE_CREDIT_PUBLISHERS: trusted.address });
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  await skerryHere(environment, ['key', 'import', '-'], publisher);
  const set = (unit: number, ...more: string[]) => [
    ...['credit', 'prices', '--set', pricesOf(unit)],
    ...more,
  ];
  const client = new CoreClient({ url: core.url, signer: buyer });
  /** Dated back as far as a message can be that is on time. */
  const buy = async () => {
    const timestamp = Math.floor(Date.now() / 1000) - LIMITS.lateSeconds + 60;
    const draft = { type: 'INSTANCE', content: instance, timestamp, nonce: crypto.randomUUID() };
    return (await client.postMessage(draft)).item_hash;
  };
  const costOf = async (item_hash: string) =>
    (await call(core.url, COSTS_API.getCost, { params: { item_hash } })).cost;
  const [before, cheap] = ['3.958333333000000000', await buy()];
  assert.equal(await costOf(cheap), before);

  // What was taken back held for nobody.
  const mistaken = await succeedHere(environment, ...set(1));
  const lucky = await buy();
  await succeedHere(environment, 'message', 'forget', mistaken, '--yes');
  assert.equal(await costOf(lucky), before);

  const sent = await succeedHere(environment, ...set(8_000_000_000));
  const chosen = await buy();
  assert.equal(await costOf(chosen), before);
  const refused = await skerryHere(environment, [...set(9_000_000_000, '--reach-back'), '--json']);
  assert.equal(JSON.parse(refused.err).code, 'INVALID_PARAMETERS');

  await succeedHere(environment, 'message', 'forget', sent, '--yes');
  await succeedHere(environment, ...set(8_000_000_000, '--reach-back'));
  for (const hash of [cheap, lucky, chosen, await buy()])
    assert.equal(await costOf(hash), '8.000000000000000000');
});

test('prices reach back where they are set', async () => {
  const { err, code } = await skerryHere({}, ['credit', 'prices', '--reach-back', '--json']);
  assert.deepEqual([JSON.parse(err).code, code], ['INVALID_PARAMETERS', 2]);
});
