import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, call, createSigner, type Signer } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { CREDIT_CHANNEL, CREDIT_POST, fieldsOf, tokensToCredits } from '@skerry/protocol';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { EVENTS_API } from '@skerry/protocol/api/core/events';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import { TokenChain } from '../credits/testing/chain.ts';
import { FINALITY, openNetwork, PRICE } from '../credits/testing/network.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';
import { say, until } from '../testing/shell.ts';

/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
/** The second account of the test chain, as its mnemonic has it. */
const ALICE_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';
const TOKEN = 10n ** BigInt(PRICE.decimals);
const MACHINE = {
  ...{ cpu: 1, memory: 512, disk: 4, image: 'debian:12' },
  ssh_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz t',
};
const HOUR = 3_600;
// Another hour is charged whenever a test runs past its end.
const SERVICE = {
  SKERRY_CREDIT_CHARGING: 'no',
  SKERRY_CREDIT_ENFORCEMENT: 'yes',
  SKERRY_CREDIT_GRACE_HOURS: '0',
};

const creditsOf = (amount: bigint) => tokensToCredits(amount, PRICE).credits;

/** What a service says of credit, signed with its key. */
const speak = (core: CoreClient<Signer>, type: string, content: object, timestamp?: number) =>
  core.postMessage({
    ...{ type: 'POST', channel: CREDIT_CHANNEL, content: { type, content } },
    ...(timestamp === undefined ? {} : { timestamp }),
  });

/** All that a key ever signed, taken back, but for the notices: of a stop without one, which never held, a core node tells nobody the text. */
async function takeBack(core: CoreClient<Signer>): Promise<void> {
  const { messages } = await core.listMessages({ addresses: core.signer.address, limit: 100 });
  const isNotice = (content: unknown) => fieldsOf(content).type === CREDIT_POST.notice;
  await core.forget(messages.flatMap((one) => (isNotice(one.content) ? [] : [one.item_hash])));
}

/** Costs about ten CPU seconds. */
test('the key of a credit service leaks: with a new one, purchases on the chain, balances and stopped machines stay', async () => {
  await using stack = new AsyncDisposableStack();
  const { path: dir } = stack.use(await createTestDir());
  const keyOf = async (name: string) => createSigner(await loadOrCreateKeyFile(join(dir, name, 'key')));
  const [old, next] = [await keyOf('credit'), await keyOf('next')];
  const alice = createSigner(ALICE_KEY);
  const chain = stack.use(await TokenChain.start());
  const [deployer, buyer, , receiver] = (await chain.accounts()) as [string, string, string, string];
  await chain.transfer(deployer, buyer, 100n * TOKEN);
  await chain.mine(FINALITY);
  const settings = { core: { SKERRY_CORE_CREDIT_ENFORCEMENT: 'yes' }, credit: SERVICE };
  const { first: core, credit } = await openNetwork(dir, chain, receiver, old.address, settings);
  for (const daemon of [core, credit]) stack.use(daemon);
  await credit.start();

  const as = (signer: Signer) => new CoreClient({ url: core.url, signer });
  const account = () =>
    call(core.url, CREDITS_API.getBalance, { params: { address: alice.address }, query: {} });
  const balanceIs = async (credits: bigint) => BigInt((await account()).credit_balance) === credits;
  const desiredOf = async (id: string) => (await as(alice).getInstance(id)).desired;
  const buy = async (tokens: bigint) => {
    await chain.transfer(buyer, receiver, tokens * TOKEN);
    await chain.mine(FINALITY + 1);
  };
  await buy(1n);
  await until('it is credited', TIMEOUT_MS, () => balanceIs(creditsOf(TOKEN)));
  const machines: string[] = [];
  for (const name of ['a', 'b'])
    machines.push((await as(alice).createInstance({ ...MACHINE, name })).instance_id);
  const spent = { address: alice.address, ref: machines[0]!, nanocredits: `${creditsOf(TOKEN)}000000000` };
  const start_date = Math.floor(Date.now() / 1000) - HOUR;
  const expense = { start_date, end_date: start_date + HOUR, credits: [spent] };
  await speak(as(old), CREDIT_POST.expense, { expense });
  const areStopped = async () =>
    (await Promise.all(machines.map(desiredOf))).every((one) => one === 'stopped');
  await until('both are stopped without credit', TIMEOUT_MS, areStopped);
  // The owner pays, and starts neither of them.
  await buy(10n);
  await until('there is credit again', TIMEOUT_MS, async () => (await account()).credit_state === 'ok');
  const balance = creditsOf(10n * TOKEN);
  assert.ok(await balanceIs(balance));
  await credit.kill();
  say('two purchases were credited, and two machines stopped');

  const moment = Math.floor(Date.now() / 1000) + 1;
  await until('the leak', TIMEOUT_MS, async () => Date.now() > (moment + 1) * 1_000);
  const theft = { credits: [{ address: old.address, amount: 1_000_000, ref: 'theft' }] };
  await speak(as(old), CREDIT_POST.distribution, { distribution: theft }, moment - HOUR);
  // It is refused, kept, and not adopted either.
  const stop = as(old).postMessage({
    ...{ type: 'INSTANCE_CONTROL', content: { instance_id: machines[1]!, action: 'stop' } },
    timestamp: moment - 24 * HOUR,
  });
  await assert.rejects(stop, { code: 'NOT_PERMITTED' });
  const stops = await as(old).listMessages({
    ...{ addresses: old.address, types: 'INSTANCE_CONTROL', limit: 100 },
  });
  assert.ok(stops.messages.length >= 2);
  await takeBack(as(old));
  // Nothing paid for the machines: by now they are none.
  const isLost = (id: string) =>
    desiredOf(id).then(
      () => false,
      (error) => error.code === 'INSTANCE_NOT_FOUND',
    );
  await until('they are lost', TIMEOUT_MS, async () =>
    (await Promise.all(machines.map(isLost))).every(Boolean),
  );
  say('a thief granted itself credit and took back what was signed');

  const adopt = async (...more: string[]) => {
    const given = ['--until', String(moment), '--key-file', join(dir, 'next', 'key'), '--json', ...more];
    const environment = { SKERRY_HOME: dir, SKERRY_CORE_URL: core.url };
    const { out, err, code } = await skerryHere(environment, ['credit', 'adopt', old.address, ...given]);
    assert.equal(code, 0, err);
    return JSON.parse(out);
  };
  const { signed, ...told } = await adopt();
  // Two purchases, a charge, three notices, and two stops; of the thief's, the grant and the stop.
  assert.deepEqual([signed, told.too_late, told.unreadable], [8, 2, 0]);
  const again = await adopt();
  assert.deepEqual([again.signed, again.signed_before, again.unreadable], [0, signed, 0]);

  await core.kill();
  core.set({ SKERRY_CORE_CREDIT_PUBLISHERS: next.address });
  await core.start();
  // They come back one after the other.
  await until('both are stopped again', TIMEOUT_MS, () => areStopped().catch(() => false));
  await until('the balance is as it was', TIMEOUT_MS, () => balanceIs(balance));
  const { cursor } = await as(alice).listInstances();
  credit.set({ SKERRY_CREDIT_DATA_DIR: join(dir, 'next') });
  await credit.start();
  const purchases = async () =>
    (await call(credit.url, CREDIT_API.listPurchases, { query: { pagination: 100 } })).data;
  const areKnown = async (count: number) =>
    (await purchases()).filter(({ status }) => status === 'COMPLETED').length === count;
  await until('the new service has read the chain', TIMEOUT_MS, () => areKnown(2));
  assert.ok(await balanceIs(balance), 'nothing is credited twice');
  await buy(3n);
  await until('the new service credits', TIMEOUT_MS, () => areKnown(3));
  assert.ok(await balanceIs(balance + creditsOf(3n * TOKEN)));
  const { events } = await call(core.url, EVENTS_API.listEvents, {
    query: { cursor: String(cursor), kinds: 'instance', limit: 100 },
  });
  assert.deepEqual(events, [], 'no machine was started or stopped since');
  assert.ok(await areStopped());
});
