import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createSigner } from '@skerry/client/signer';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir } from '../testing/run.ts';

const signer = createSigner(`0x${'11'.repeat(32)}`);
const CONTENT = { type: 'note', content: { amount: 1 } };
const { body, itemHash } = signMessage({ type: 'POST', content: CONTENT, timestamp: 1_700_000_000 }, signer);
const { signature } = JSON.parse(body) as { signature: string };
const TEXT = body.slice('{"message":'.length, body.lastIndexOf(',"signature":'));

const HONEST = {
  ...{ item_hash: itemHash, chain: signer.chain, sender: signer.address, type: 'POST', channel: 'skerry' },
  ...{ timestamp: 1_700_000_000, content: CONTENT, signature, signed_text: TEXT, confirmations: [] },
  ...{ status: 'processed', reception_time: new Date(0).toISOString() },
};

/** What `skerry message get` makes of a node's words. */
async function show(view: object, ...args: string[]) {
  await using home = await createTestDir();
  await using node = await replying(({ pathname }) =>
    pathname === `/api/v0/messages/${itemHash}` ? view : undefined,
  );
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: node.url };
  return await skerryHere(environment, ['message', 'get', itemHash, ...args]);
}

test('a node cannot show another message than its sender signed', async () => {
  const honest = await show(HONEST);
  assert.equal(honest.code, 0, honest.err);
  assert.match(honest.out, /^signature: verified$/m);
  assert.equal(JSON.parse((await show(HONEST, '--json')).out).signature_verified, true);

  for (const lie of [
    { content: { type: 'note', content: { amount: 2 } } },
    { sender: `0x${'2'.repeat(40)}` },
    { channel: 'other' },
    { timestamp: 1_700_000_001 },
    {
      signed_text: TEXT.replace('"amount":1', '"amount":2'),
      content: { type: 'note', content: { amount: 2 } },
    },
    { signed_text: null },
    { status: 'forgotten', signed_text: null },
  ]) {
    const { code, out, err } = await show({ ...HONEST, ...lie });
    assert.equal(code, 5, JSON.stringify(lie));
    assert.equal(out, '');
    assert.match(err, /was not signed as the core node shows it: .*\(UNEXPECTED_ANSWER\)/);
  }
  const other = await show({ ...HONEST, item_hash: '0'.repeat(64) });
  assert.deepEqual([other.code, other.out], [5, '']);
  assert.match(other.err, /tells of 0+ where .* was asked for \(UNEXPECTED_ANSWER\)/);
});

test('of what nothing is left, no signature is said to be verified', async () => {
  const { code, out } = await show({ ...HONEST, status: 'forgotten', content: null, signed_text: null });
  assert.equal(code, 0);
  assert.match(out, /^signature: not verified: nothing is left of it$/m);
});
