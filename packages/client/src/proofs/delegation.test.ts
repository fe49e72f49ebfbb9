import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS, sharedText, verifySubmission } from '@skerry/protocol';
import { type MessageDraft, signMessage } from '../message.ts';
import { createSigner, type Signer } from '../signer.ts';
import { answering } from '../testing/answering.ts';
import { proveDelegation } from './delegation.ts';

const [owner, helper] = [createSigner(`0x${'1'.repeat(64)}`), createSigner(`0x${'2'.repeat(64)}`)];
const T0 = 1_700_000_000;
const PATH = '/api/v0/messages.json';

const signed = (draft: MessageDraft, signer: Signer) =>
  verifySubmission(signMessage(draft, signer).body, T0 + 1_000);
const granted = signed(
  {
    ...{ type: 'AGGREGATE', timestamp: T0 },
    content: { key: 'security', content: { authorizations: [{ address: helper.address }] } },
  },
  owner,
);
const row = {
  ...{ item_hash: granted.itemHash, item_type: 'inline', item_content: null, shared: sharedText(granted) },
  ...{ type: 'AGGREGATE', chain: 'ETH', sender: owner.address, signature: granted.signature, time: T0 },
};
const onBehalf = signed(
  {
    ...{ type: 'POST', timestamp: T0 + 5 },
    content: { type: 'note', address: owner.address, content: 'for somebody else' },
  },
  helper,
);
const pageOf = (messages: readonly unknown[], more: object = {}) => ({
  ...{ messages, pagination_page: 1, pagination_total: messages.length, pagination_per_page: 100 },
  ...{ pagination_item: 'messages', next_cursor: null, ...more },
});
const prove = (coreUrl: string) => proveDelegation({ coreUrl }, onBehalf);

test('what an owner permitted is read from the date of the message backwards, and an odd row hides no other', async () => {
  await using node = await answering({ [PATH]: [pageOf([{ item_hash: 'odd' }, row])] });
  const found = await prove(node.url);
  const end = T0 + 5 + LIMITS.revocationSeconds + 1;
  assert.equal(new URL(node.asked[0]!, 'http://node').searchParams.get('endDate'), String(end));
  const { grantedBy, refusal, refused, isCut } = found!;
  assert.deepEqual([grantedBy, refusal, isCut], [granted.itemHash, undefined, false]);
  assert.deepEqual(
    refused.map(({ itemHash, code }) => [itemHash, code]),
    [['odd', 'UNEXPECTED_ANSWER']],
  );
});

test('of an owner who signed more than is read it is told that there is more', async () => {
  const other = { ...row, item_hash: 'a'.repeat(64) };
  await using node = await answering({ [PATH]: [pageOf(Array(500).fill(other), { next_cursor: 'n' })] });
  const { isCut, grantedBy, verified } = (await prove(node.url))!;
  assert.deepEqual([isCut, grantedBy, verified, node.asked.length], [true, null, 0, 2]);
});

test('a node that fails at something of its own says nothing of what was permitted', async () => {
  const { shared: _, ...bare } = row;
  const failed = { status: 'error', code: 'INTERNAL', error: 'see the log' };
  await using node = await answering({ [PATH]: [pageOf([bare])] }, failed);
  await assert.rejects(prove(node.url), { code: 'INTERNAL' });
});
