import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, itemHashOf, sha256Hex } from '@skerry/protocol';
import { CoreClient } from '../core-client.ts';
import { publishScores } from '../scoring/publish.ts';
import { createSigner } from '../signer.ts';
import { answering } from '../testing/answering.ts';
import { storeInParts } from './upload.ts';

const signer = createSigner(`0x${'1'.repeat(64)}`);
const file = new Blob(['the bytes of a file']);
const hash = sha256Hex('the bytes of a file');
const itemHash = itemHashOf('ETH', signer.address, hash);
const other = 'a'.repeat(64);
const UPLOAD = `/api/v0/storage/uploads/${hash}`;
const at = (received: number, item_hash: string | null) => ({
  ...{ file_hash: hash, size: file.size, received, item_hash },
});
const unknown = { status: 'error', code: 'MESSAGE_NOT_FOUND', error: 'no message has this hash' };
const wrong = { code: 'HASH_MISMATCH' };

test('whatever message a node says that it keeps a file by, it is the one that was signed', async () => {
  const stored = { status: 'success', item_hash: itemHash, file_hash: hash };
  const answers = [{ ...stored, item_hash: other }, { ...stored, file_hash: other }, stored];
  await using node = await answering(
    { [UPLOAD]: [at(0, other), at(0, null), at(19, other)], '/api/v0/storage/store': answers },
    unknown,
  );
  const core = new CoreClient({ url: node.url, signer });
  for (const part of ['all of it is there', 'it was sent'])
    await assert.rejects(storeInParts(core, file, hash), wrong, part);
  for (const _ of answers.slice(1)) await assert.rejects(core.storeFile(file, 'file', hash), wrong);
  assert.deepEqual(await core.storeFile(file, 'file', hash), stored);
});

test('whoever ends a client ends its uploads and what it publishes, also where it waits for a busy node', async () => {
  await using node = await answering({ [UPLOAD]: [at(0, null)] }, unknown);
  const stop = new AbortController();
  const core = new CoreClient({ url: node.url, signer, signal: stop.signal });
  const ended = new Error('its user went away');
  const send = () => {
    stop.abort(ended);
    return Promise.reject(new AppError('OVERLOADED', 'an earlier part is being read'));
  };
  await assert.rejects(storeInParts(core, file, hash, { send }), ended);
  const asked = node.asked.length;
  await assert.rejects(publishScores(core, { content: {}, files: new Map() } as never), ended);
  assert.equal(node.asked.length, asked);
});

test('a time limit that ends the wait for a busy node leaves what the node said', async () => {
  await using node = await answering({ [UPLOAD]: [at(5, null)] }, unknown);
  const limit = new AbortController();
  const core = new CoreClient({ url: node.url, signer, signal: limit.signal });
  const send = () => {
    limit.abort(new DOMException('late', 'TimeoutError'));
    return Promise.reject(new AppError('OVERLOADED', 'an earlier part is being read'));
  };
  await assert.rejects(storeInParts(core, file, hash, { send }), { code: 'OVERLOADED' });
});

test('a node that has no room is told of before the same part is sent again', async () => {
  await using node = await answering({ [UPLOAD]: [at(5, null)] }, unknown);
  const told: string[] = [];
  let tries = 0;
  const send = async () => {
    if (tries++ === 0) throw new AppError('OVERLOADED', 'too many files are being uploaded');
    return at(19, itemHash);
  };
  const stored = await storeInParts(new CoreClient({ url: node.url, signer }), file, hash, {
    send,
    onPart: (received) => told.push(`part at ${received}`),
    onBusy: (pauseMs) => told.push(`busy for ${pauseMs}`),
  });
  assert.equal(stored, itemHash);
  assert.deepEqual(told, ['part at 5', 'busy for 200', 'part at 5']);
});

test('a file that has no room in parts, which need twice as much, is to be sent as a whole; one that has begun to come is not', async () => {
  await using node = await answering({ [UPLOAD]: [at(0, null), at(5, null)] }, unknown);
  const core = new CoreClient({ url: node.url, signer });
  const send = () => Promise.reject(new AppError('STORAGE_FULL', 'there is no room for 90 MiB here'));
  assert.equal(await storeInParts(core, file, hash, { send }), undefined);
  await assert.rejects(storeInParts(core, file, hash, { send }), { code: 'STORAGE_FULL' });
});

test('of scores that are not in force yet it is told why', async () => {
  const reason = { code: 'CONTENT_NOT_FOUND', message: 'the content is not here yet' };
  const publication_status = { status: 'success', failed: [] };
  const verdict = { message_status: 'pending', reason };
  await using node = await answering({ '/api/v0/messages': [{ publication_status, ...verdict }] }, unknown);
  const core = new CoreClient({ url: node.url, signer });
  const { item_hash, ...told } = await publishScores(core, { content: {}, files: new Map() } as never);
  assert.match(item_hash, /^[0-9a-f]{64}$/);
  assert.deepEqual(told, verdict);
});

test('what a client reads after it sent a part, or scores, knows of them', async () => {
  const published = { publication_status: { status: 'success', failed: [] }, message_status: 'pending' };
  const answers = { [UPLOAD]: [at(0, null), at(19, itemHash)], '/api/v0/messages': [published] };
  for (const write of [
    (core: CoreClient) => storeInParts(core, file, hash),
    (core: CoreClient) => publishScores(core, { content: {}, files: new Map() } as never),
  ]) {
    await using node = await answering(answers, unknown, { 'x-last-event': '7' });
    const core = new CoreClient({ url: node.url, signer });
    await write(core);
    await assert.rejects(core.getMessage(itemHash), { code: 'MESSAGE_NOT_FOUND' });
    assert.equal(node.headers.at(-1)!['x-after-event'], '7');
  }
});

/** Of a node that has kept nothing yet, and says by itself how far a file came. */
const coreThatHas = (received: () => number) =>
  Object.assign(new CoreClient({ url: 'http://127.0.0.1:1', signer }), {
    getMessageStatus: () => Promise.reject(new AppError('MESSAGE_NOT_FOUND', 'no message has this hash')),
    getUpload: async (file_hash: string, size: number) => ({
      ...{ file_hash, size, received: received(), item_hash: null },
    }),
  });

test('a file that breaks off goes on for as long as the node has more of it each time, and ends where it does not', async () => {
  const MIB = 1024 ** 2;
  const large = new Blob([new Uint8Array(14 * MIB)]);
  const ofLarge = sha256Hex(new Uint8Array(14 * MIB));
  const kept = itemHashOf('ETH', signer.address, ofLarge);
  const store = async (steps: readonly number[]) => {
    let received = 0;
    let sent = 0;
    const send = async () => {
      received += steps[sent++ % steps.length]!;
      if (received >= large.size)
        return { file_hash: ofLarge, size: large.size, received: large.size, item_hash: kept };
      throw new AppError('UPSTREAM_UNAVAILABLE', 'it broke off');
    };
    const core = coreThatHas(() => received);
    const item = await storeInParts(core, large, ofLarge, { send }).catch((error: AppError) => error.message);
    return { item, sent };
  };
  assert.deepEqual(await store([MIB]), { item: kept, sent: 14 });
  assert.deepEqual(
    await store([...Array<number>(9).fill(1), MIB - 9]),
    { item: kept, sent: 140 },
    'together',
  );
  const { item, sent } = await store([MIB, ...Array<number>(20).fill(1)]);
  assert.match(item!, /^the node has \d+ of \d+ bytes after 11 tries; send the same file again/);
  assert.equal(sent, 11);
});

test('a node that says that it has ever more than all is not believed for ever', async () => {
  let received = 0;
  let sent = 0;
  const send = async () => {
    sent++;
    received += 1024 ** 2;
    return at(received, null);
  };
  const core = coreThatHas(() => received);
  await assert.rejects(storeInParts(core, file, hash, { send }), { code: 'UPSTREAM_UNAVAILABLE' });
  assert.equal(sent, 10);
});
