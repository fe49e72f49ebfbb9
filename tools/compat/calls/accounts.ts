import assert from 'node:assert/strict';
import type { Call } from '../call.ts';

/** A post that is signed by an account of each chain that the SDK can make one for without asking a wallet. */
const CHAINS: readonly { readonly name: string; readonly theirs?: string }[] = [
  { name: 'ethereum' },
  { name: 'base' },
  { name: 'solana' },
  { name: 'substrate' },
  { name: 'cosmos' },
  { name: 'nuls2' },
  { name: 'avalanche', theirs: 'the SDK signs for an address that no node can recover from the signature' },
  {
    name: 'tezos',
    theirs: 'the SDK writes the time of the message into the signed text in another unit than nodes',
  },
];

export const accountCalls: readonly Call[] = CHAINS.map(({ name, ...more }) => ({
  name: `account of ${name}, post.send`,
  async run(world) {
    const made = await world.sdk.load(name).newAccount();
    const account = made.account ?? made.signerAccount;
    const { item_hash, sender } = await world.client('PostMessageClient').send({
      account,
      channel: world.channel,
      postType: 'compat-chain',
      content: { chain: name },
      sync: true,
    });
    assert.equal(sender, account.address);
    assert.equal(await world.statusOf(item_hash), 'processed');
  },
  ...more,
}));
