import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { CoreClient, call, createSigner, signMessage } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { tokensToCredits } from '@skerry/protocol';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { STATE_API } from '@skerry/protocol/api/core/state';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import { say, until } from '../testing/shell.ts';
import { TokenChain } from './testing/chain.ts';
import { FINALITY, openNetwork, PRICE } from './testing/network.ts';

/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz t';

test('A purchase on the chain becomes credits exactly once across a reorg and a kill -9', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-credit-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const chain = stack.use(await TokenChain.start());
  const [deployer, alice, bob, receiver] = (await chain.accounts()) as [string, string, string, string];
  for (const buyer of [alice, bob]) await chain.transfer(deployer, buyer, 10n ** 12n);
  await chain.mine(FINALITY);
  const publisher = createSigner(await loadOrCreateKeyFile(join(dir, 'credit', 'key'))).address;
  const { first, second, credit } = await openNetwork(dir, chain, receiver, publisher);
  for (const daemon of [first, second, credit]) stack.use(daemon);
  await second.start();
  await credit.start();
  say('two core nodes and a credit service run');

  const bought = new Map<string, bigint>();
  const buy = async (from: string, amount: bigint) => {
    const hash = await chain.transfer(from, receiver, amount);
    bought.set(from, (bought.get(from) ?? 0n) + tokensToCredits(amount, PRICE).credits);
    return hash;
  };
  const payments = async () =>
    (await call(credit.url, CREDIT_API.listPurchases, { query: { pagination: 100 } })).data;
  const statusOf = async (hash: string) => (await payments()).find((one) => one.tx_hash === hash)?.status;
  const accountOf = (url: string, address: string) =>
    call(url, CREDITS_API.getBalance, { params: { address }, query: {} });
  const balanceOf = async (url: string, address: string) =>
    BigInt((await accountOf(url, address)).credit_balance);
  const areSettled = async (count: number) =>
    (await payments()).filter(({ status }) => status === 'COMPLETED').length === count;
  const checkBalances = async (url: string) => {
    for (const [address, credits] of bought) assert.equal(await balanceOf(url, address), credits);
  };

  // Taken back by a reorganisation before it was final: nothing was credited.
  const lost = await chain.transfer(alice, receiver, 77_000_000n);
  await chain.mine();
  await until('it is seen', TIMEOUT_MS, async () => (await statusOf(lost)) === 'CREATED');
  await chain.reorg(2);
  await chain.mine(2);
  await until('it is taken back', TIMEOUT_MS, async () => (await statusOf(lost)) === 'CANCELLED');
  assert.equal(await balanceOf(first.url, alice), 0n);
  say('a reorganisation took a purchase back');

  // Killed between the journal and the message, and at other moments.
  await credit.kill();
  await buy(alice, 10_000_001n);
  await buy(bob, 5_000_000n);
  await chain.mine(FINALITY + 1);
  const journal = join(dir, 'credit', 'purchases.jsonl');
  const starting = credit.start();
  await until('the journal', TIMEOUT_MS, async () => existsSync(journal));
  await starting.catch(() => {});
  await credit.kill();
  say('killed when the journal was written');
  for (const waitMs of [0, 60, 150]) {
    await buy(alice, 1_000_000n);
    await buy(bob, 3n);
    await chain.mine(FINALITY);
    await credit.start();
    await delay(waitMs);
    await credit.kill();
  }
  // Above what is final the chain may change at will.
  await chain.mine(2);
  await chain.reorg(2);
  await chain.mine(FINALITY + 2);
  await credit.start();
  await until('all of them are credited', TIMEOUT_MS, () => areSettled(8));
  await checkBalances(first.url);
  say('eight purchases across four kills and a reorganisation');

  // Without its memory the service finds everything again, and nothing is credited twice.
  await credit.kill();
  for (const file of ['purchases.jsonl', 'progress.json']) await rm(join(dir, 'credit', file));
  await credit.start();
  await first.kill();
  await first.start();
  await until('all of them are known again', TIMEOUT_MS, () => areSettled(8));
  await checkBalances(first.url);
  say('the journal was lost, and the core node killed');

  // What is used is charged, once; a balance that will not last is announced.
  const user = createSigner(`0x${'77'.repeat(32)}`);
  const core = new CoreClient({ url: first.url, signer: user });
  await core.createInstance({
    name: 'a',
    cpu: 1,
    memory: 512,
    disk: 4,
    image: 'debian:12',
    ssh_key: SSH_KEY,
  });
  await until('it is charged and announced', TIMEOUT_MS, async () => {
    const account = await accountOf(first.url, user.address);
    return account.credit_balance < 0 && account.credit_state === 'low';
  });
  say('an instance was charged');
  // Who charges would charge the next hour while messages are on their way.
  await credit.kill();

  // The same messages in another order, twice: the same balances.
  const { messages } = await core.listMessages({ limit: 100 });
  const submit = (body: string) => call(second.url, MESSAGES_API.submitMessage, { body });
  for (const one of [...messages.toReversed(), ...messages])
    await submit(
      `{"message":${one.signed_text},"signature":${JSON.stringify(one.signature)},"address":${JSON.stringify(one.sender)}}`,
    );
  await checkBalances(second.url);
  const digest = async (url: string) => (await call(url, STATE_API.getStateDigest, {})).derived.credits;
  await until('both agree', TIMEOUT_MS, async () => {
    const [a, b] = await Promise.all([digest(first.url), digest(second.url)]);
    return JSON.stringify(a) === JSON.stringify(b);
  });
  assert.equal(
    messages.filter(({ signed_text }) => signed_text!.includes('net-credit-distribution')).length,
    8,
  );

  // A stranger's purchase is a message like any other.
  const { body } = signMessage(
    {
      type: 'POST',
      content: {
        type: 'net-credit-distribution',
        content: {
          distribution: { credits: [{ address: user.address, amount: 1_000_000_000, ref: 'mine' }] },
        },
      },
    },
    user,
  );
  await submit(body);
  assert.ok((await balanceOf(second.url, user.address)) < 0n);
});
