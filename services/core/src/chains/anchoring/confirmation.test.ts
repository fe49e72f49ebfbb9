import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listedOf, proveConfirmation, verifyListed } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { confirmationsOf, createAnchoredCore, sendPosts, TestChain } from './testing/setup.ts';

const wrong = (message: RegExp) => ({ code: 'HASH_MISMATCH', message });

test('a reader checks with an endpoint of the chain that a message is confirmed, and where it is not', async () => {
  await using chain = await TestChain.start();
  await using packer = await createAnchoredCore(await chain.settings({ packs: true }));
  const [first] = await sendPosts(packer.core, 3);
  const confirmation = await until(
    'the message is confirmed',
    async () => {
      await chain.anvil.mine();
      return (await confirmationsOf(packer.core, first!))[0];
    },
    (found) => found !== undefined,
  );
  const source = { coreUrl: packer.url, rpcUrl: chain.anvil.url };
  const messageOf = async (hash: string) => {
    const { body } = await packer.core.get(`/messages/${hash}`);
    return verifyListed(source, listedOf(body));
  };
  const message = await messageOf(first!);
  const proven = await proveConfirmation(source, confirmation!, message);
  assert.equal(proven.contract, chain.contract);
  assert.equal(proven.isArchiveProven, true);
  assert.ok(proven.depth >= 0);

  const { height, hash } = confirmation!;
  const elsewhere = { height: height + 1, hash };
  await assert.rejects(proveConfirmation(source, elsewhere, message), wrong(/is in block/));
  const madeUp = { height, hash: `0x${'1'.repeat(64)}` };
  await assert.rejects(proveConfirmation(source, madeUp, message), wrong(/no transaction/));
  const [later] = await sendPosts(packer.core, 1, 'later');
  const unpacked = await messageOf(later!);
  await assert.rejects(proveConfirmation(source, confirmation!, unpacked), wrong(/not in the archive/));
});
