import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cidOfFile,
  itemHashOf,
  sha256Hex,
  sharedText,
  type VerifiedMessage,
  verifySubmission,
} from '@skerry/protocol';
import type { JudgedMessageView } from '@skerry/protocol/api/core/messages';
import { buildNetworkMessage, buildStoredMessage } from './network-message.ts';
import { listedOf, verifyListed } from './signed-message.ts';
import { createSigner } from './signer.ts';
import { answering } from './testing/answering.ts';

const owner = createSigner(`0x${'1'.repeat(64)}`);
const FILE = sha256Hex('the bytes of a file');
const STORED = { item_type: 'storage', item_hash: FILE, size: 19, content_type: 'text/plain' };
const reception_time = new Date(0).toISOString();

/** As a core node answers a file that was sent with the signature over its hash. */
const UPLOAD: JudgedMessageView = {
  item_hash: itemHashOf('ETH', owner.address, FILE),
  ...{ chain: 'ETH', sender: owner.address, type: 'STORE', channel: 'files', timestamp: 1_700_000_000 },
  ...{ content: STORED, signature: owner.sign(FILE), signed_text: FILE, confirmations: [] },
  ...{ status: 'processed', reception_time },
};
const ofNetwork = { address: owner.address, time: UPLOAD.timestamp, ...STORED };
const LISTED = {
  ...listedOf(UPLOAD),
  ...{ item_content: JSON.stringify(ofNetwork), content: ofNetwork, time: UPLOAD.timestamp },
};
const pathOf = (hash: string) => `/api/v0/messages/${hash}`;
const nowhere = { coreUrl: 'http://127.0.0.1:9' };

test('an upload is signed by the hash of its file: it is proven as lists have it, and by itself', async () => {
  await using node = await answering({ [pathOf(UPLOAD.item_hash)]: [UPLOAD] });
  const source = { coreUrl: node.url };
  const proven = await verifyListed(source, LISTED);
  const { form, itemHash, sender, content } = proven;
  assert.deepEqual([form, itemHash, sender, content], ['upload', LISTED.item_hash, owner.address, STORED]);
  const shared = sharedText(proven)!;
  assert.deepEqual(await verifyListed(nowhere, { ...LISTED, shared }), proven);

  const mismatch = { code: 'HASH_MISMATCH' };
  const other = { ...LISTED, item_hash: 'a'.repeat(64) };
  await assert.rejects(verifyListed(nowhere, { ...other, shared }), mismatch);
  const forged = { ...UPLOAD, signed_text: sha256Hex('other bytes') };
  await using liar = await answering({
    [pathOf(UPLOAD.item_hash)]: [forged, { ...forged, signature: owner.sign(forged.signed_text) }],
  });
  for (const code of ['INVALID_SIGNATURE', 'HASH_MISMATCH'])
    await assert.rejects(verifyListed({ coreUrl: liar.url }, LISTED), { code });
});

/** As a core node answers a message of the network form that waits. */
function waiting(body: string, itemHash: string, content: unknown): JudgedMessageView {
  const { time, ...message } = JSON.parse(body).message;
  const { chain, sender, type, channel, signature } = message;
  return {
    ...{ item_hash: itemHash, chain, sender, type, channel, signature, content, confirmations: [] },
    ...{ timestamp: Math.floor(time), status: 'pending', reception_time },
    signed_text: `${chain}\n${sender}\n${type}\n${itemHash}`,
    messages: [{ ...message, content, time: new Date(time * 1_000).toISOString(), reception_time }],
  };
}

const draft = { type: 'POST', content: { type: 'note', content: 'waits' }, time: 1_700_000_000.25 };

test('a message that waits is proven from what is told of it', async () => {
  const { body, itemHash } = buildNetworkMessage(draft, owner);
  const expected: VerifiedMessage = verifySubmission(body, 1_800_000_000);
  const row = listedOf(waiting(body, itemHash, expected.content));
  assert.deepEqual(await verifyListed(nowhere, row), expected);
});

test('a content that is not at hand is told as such: nobody said anything that is wrong', async () => {
  const missing = { code: 'CONTENT_NOT_FOUND' };
  const { body, itemHash } = buildStoredMessage(draft, owner);
  const refusal = { status: 'error', code: 'FILE_NOT_FOUND', error: 'no file has this hash' };
  await using node = await answering({}, refusal);
  const row = listedOf(waiting(body, itemHash, null));
  await assert.rejects(verifyListed({ coreUrl: node.url }, row), missing);
  const cid = `Qm${'1'.repeat(44)}`;
  const signature = owner.sign(`ETH\n${owner.address}\nPOST\n${cid}`);
  const onIpfs = { ...row, item_type: 'ipfs', item_hash: cid, signature } as const;
  await assert.rejects(verifyListed({ coreUrl: node.url }, onIpfs), missing);
});

test('a content on IPFS is proven where its CID is the one that files have by default', async () => {
  const stored = buildStoredMessage(draft, owner);
  const bytes = new TextEncoder().encode(stored.content);
  const cid = cidOfFile(bytes)!;
  const signature = owner.sign(`ETH\n${owner.address}\nPOST\n${cid}`);
  const { time, ...sent } = JSON.parse(stored.body).message;
  const row = { ...sent, time, item_type: 'ipfs', item_hash: cid, item_content: null, signature };
  const content = JSON.parse(stored.content);
  const raw = `/api/v0/storage/raw/${cid}`;
  for (const [told, told_content] of [
    [content, undefined],
    // As a node lists it that changed what it lists, or leaves it out: the bytes count.
    [{ ...content, content: { text: 'other' } }, stored.content],
    [null, stored.content],
  ] as const) {
    await using node = await answering(told_content === undefined ? {} : { [raw]: [told_content] });
    const proven = await verifyListed({ coreUrl: node.url }, { ...row, content: told });
    assert.deepEqual([proven.itemHash, proven.content], [cid, content]);
  }
  await using liar = await answering({ [raw]: [JSON.stringify({ ...content, time: 1 })] });
  await assert.rejects(verifyListed({ coreUrl: liar.url }, { ...row, content: null }), {
    code: 'CONTENT_NOT_FOUND',
  });
});

test('since when a message is there is told by what nodes pass on: also in the network form, inline or as a file', async () => {
  const noted_ms = (draft.time + 3_600) * 1_000;
  for (const { body, itemHash, ...more } of [
    buildNetworkMessage(draft, owner),
    buildStoredMessage(draft, owner),
  ]) {
    const { message } = JSON.parse(body);
    const text = message.item_content ?? ('content' in more ? more.content : '');
    const row = listedOf(waiting(body, itemHash, JSON.parse(String(text))));
    const shared = JSON.stringify({ message, noted_ms });
    const told = await verifyListed(nowhere, { ...row, shared });
    assert.deepEqual(told, { ...(await verifyListed(nowhere, row)), notedMs: noted_ms });
    const other = verifyListed(nowhere, { ...row, item_hash: 'a'.repeat(64), shared });
    await assert.rejects(other, { code: 'HASH_MISMATCH' });
  }
});
