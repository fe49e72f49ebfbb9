import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { CREDIT_CHANNEL, CREDIT_POST, parseItemHash } from '@skerry/protocol';
import { Dag } from '../../store/ipfs/testing/dags.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
const { alice, bob, credit } = signers;

/** A STORE message as the SDKs of deployed nodes make it. */
function storeMessage(fileHash: string, more: Record<string, unknown> = {}, time = 1_700_000_000) {
  const item_content = JSON.stringify({
    address: alice.address,
    time,
    item_type: /^[0-9a-f]{64}$/.test(fileHash) ? 'storage' : 'ipfs',
    item_hash: fileHash,
    ...more,
  });
  const item_hash = sha256(item_content);
  const text = `ETH\n${alice.address}\nSTORE\n${item_hash}`;
  const signature = alice.sign(text);
  return {
    chain: 'ETH',
    sender: alice.address,
    type: 'STORE',
    channel: 'test',
    time,
    item_type: 'inline',
    item_hash,
    item_content,
    signature,
  };
}

async function addFile(core: TestCore, path: string, parts: readonly (readonly [string, string | Buffer])[]) {
  const form = new FormData();
  for (const [name, value] of parts)
    typeof value === 'string' ? form.append(name, value) : form.append(name, new Blob([value as never]), 'f');
  const request = new Request('http://x/', { method: 'POST', body: form });
  const body = Buffer.from(await request.arrayBuffer());
  return core.post(path, body, { 'content-type': request.headers.get('content-type')! });
}

test('add_file takes a form, a form with its message, and bare bytes', async () => {
  await using core = await createTestCore();
  const bytes = Buffer.from('a file');
  const hash = sha256(bytes);
  const loose = await addFile(core, '/storage/add_file', [['file', bytes]]);
  assert.deepEqual([loose.status, loose.body], [200, { status: 'success', hash }]);
  const bare = await core.post('/storage/add_file', Buffer.from('bare'), {
    'content-type': 'application/octet-stream',
  });
  assert.deepEqual([bare.status, bare.body.hash], [200, sha256('bare')]);
  const message = storeMessage(hash);
  const metadata = JSON.stringify({ message, sync: true });
  for (const parts of [
    [
      ['metadata', metadata],
      ['file', bytes],
    ],
    [
      ['file', bytes],
      ['metadata', metadata],
    ],
  ] as const) {
    const kept = await addFile(core, '/storage/add_file', parts);
    assert.deepEqual([kept.status, kept.body], [200, { status: 'success', hash }]);
  }
  assert.equal((await core.get(`/storage/count/${hash}`)).body, 1);
  const reference = await core.get(`/storage/by-message-hash/${message.item_hash}`);
  assert.deepEqual(reference.body, {
    ref: message.item_hash,
    owner: alice.address,
    file_hash: hash,
    size: bytes.length,
    download_url: `/api/v0/storage/raw/${hash}`,
  });
  const other = await addFile(core, '/storage/add_file', [
    ['metadata', metadata],
    ['file', Buffer.from('another')],
  ]);
  assert.deepEqual([other.status, other.body.code], [400, 'HASH_MISMATCH']);
  const forged = JSON.stringify({ message: { ...message, sender: bob.address } });
  const refused = await addFile(core, '/storage/add_file', [
    ['metadata', forged],
    ['file', bytes],
  ]);
  assert.deepEqual([refused.status, refused.body.code], [401, 'INVALID_SIGNATURE']);
});

test('of a file whose message is refused nothing is kept, also where the message waited for the file', async () => {
  await using core = await createTestCore({ creditEnforcement: true });
  const refuse = async (message: ReturnType<typeof storeMessage>, bytes: Buffer) => {
    const { status, body } = await addFile(core, '/storage/add_file', [
      ['metadata', JSON.stringify({ message, sync: true })],
      ['file', bytes],
    ]);
    assert.equal(await core.blobs.find(parseItemHash(sha256(bytes))), undefined);
    return [status, body.code];
  };
  const [unpaid, waiting, ofAnother] = ['unpaid', 'waiting', 'of another'].map((text) => Buffer.from(text));
  const unpaidMessage = storeMessage(sha256(unpaid!));
  for (let times = 0; times < 2; times++)
    assert.deepEqual(await refuse(unpaidMessage, unpaid!), [402, 'CREDIT_INSUFFICIENT']);
  const waitingMessage = storeMessage(sha256(waiting!));
  const sent = await core.post('/messages', Buffer.from(JSON.stringify({ message: waitingMessage })));
  assert.deepEqual([sent.status, sent.body.message_status], [202, 'pending']);
  assert.deepEqual(await refuse(waitingMessage, waiting!), [402, 'CREDIT_INSUFFICIENT']);
  const statusOf = async ({ item_hash: hash }: typeof waitingMessage) =>
    (await core.get(`/messages/${hash}/status`)).body.status;
  assert.equal(await statusOf(waitingMessage), 'rejected', 'it waits for nothing any more');
  assert.equal(await statusOf(unpaidMessage), 'error', 'nor is the message kept that came with its file');
  const unpermitted = storeMessage(sha256(ofAnother!), { address: bob.address });
  assert.deepEqual(await refuse(unpermitted, ofAnother!), [403, 'NOT_PERMITTED']);
});

test('of files that come at once none is kept but those that there is credit for, beside each other and whatever their dates', async () => {
  const nowMs = Date.now();
  const seconds = Math.floor(nowMs / 1000);
  await using core = await createTestCore({ creditEnforcement: true, now: () => nowMs });
  // For a day of one file.
  const distribution = { credits: [{ address: alice.address, amount: 1, ref: 'r' }] };
  const content = { type: CREDIT_POST.distribution, content: { distribution } };
  const draft = { type: 'POST', channel: CREDIT_CHANNEL, content, timestamp: seconds - 500 } as const;
  assert.equal((await core.send(credit, draft)).status, 200);
  const [uploads, files] = [0, 1].map(() => Array.from({ length: 4 }, () => randomBytes(1_000)));
  const sendAt = (bytes: Buffer, time: number) => {
    const message = storeMessage(sha256(bytes), {}, time);
    return addFile(core, '/storage/add_file', [
      ['metadata', JSON.stringify({ message, sync: true })],
      ['file', bytes],
    ]);
  };
  const answers = await Promise.all([
    ...files!.map((bytes, at) => sendAt(bytes, seconds - at)),
    ...uploads!.map((bytes) =>
      addFile(core, '/storage/store', [
        ['address', alice.address],
        ['signature', alice.sign(sha256(bytes))],
        ['file', bytes],
      ]),
    ),
  ]);
  const count = async () => (await core.blobs.list(undefined, 10)).length;
  const codes = answers.map(({ status, body }) => (status === 200 ? status : body.code));
  assert.deepEqual(codes.toSorted(), [200, ...Array.from({ length: 7 }, () => 'CREDIT_INSUFFICIENT')]);
  assert.equal(await count(), 1);
  // It would be in force in the place of the one that is kept.
  const before = await sendAt(randomBytes(1_000), seconds - 300);
  assert.deepEqual([before.status, before.body.code], [402, 'CREDIT_INSUFFICIENT']);
  assert.equal(await count(), 1);
});

test('of a file of IPFS whose message comes before it and is refused no block is kept', async () => {
  const MIB = 1024 * 1024;
  await using core = await createTestCore({ creditEnforcement: true, uploadLimitBytes: 8 * MIB });
  const bytes = Buffer.from('hello world\n');
  const cid = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
  const add = (path: string, message: ReturnType<typeof storeMessage>, file: Buffer) =>
    addFile(core, path, [
      ['metadata', JSON.stringify({ message, sync: true })],
      ['file', file],
    ]);
  const refuse = async (...what: Parameters<typeof add>) => {
    const { status, body } = await add(...what);
    assert.deepEqual(await core.blobs.list(undefined, 10), []);
    return [status, body.code];
  };
  const unpaid = storeMessage(cid);
  assert.deepEqual(await refuse('/ipfs/add_file', unpaid, bytes), [402, 'CREDIT_INSUFFICIENT']);
  const dag = new Dag();
  const root = await dag.directory({ a: Buffer.from('a file') });
  const car = await dag.car(root);
  assert.deepEqual(await refuse('/ipfs/add_car', storeMessage(`${root}`), car), [402, 'CREDIT_INSUFFICIENT']);
  const unpermitted = storeMessage(cid, { address: bob.address });
  assert.deepEqual(await refuse('/ipfs/add_file', unpermitted, bytes), [403, 'NOT_PERMITTED']);
  const waiting = storeMessage(cid, {}, 1_700_000_001);
  const sent = await core.post('/messages', Buffer.from(JSON.stringify({ message: waiting })));
  assert.deepEqual([sent.status, sent.body.message_status], [202, 'pending']);
  assert.deepEqual(await refuse('/ipfs/add_file', waiting, bytes), [402, 'CREDIT_INSUFFICIENT']);
  const statusOf = async ({ item_hash: hash }: typeof waiting) =>
    (await core.get(`/messages/${hash}/status`)).body.status;
  assert.equal(await statusOf(waiting), 'rejected', 'it waits for nothing any more');
  assert.equal(await statusOf(unpaid), 'error', 'nor is the message kept that came with its file');

  // For a day of three mebibytes.
  const distribution = { credits: [{ address: alice.address, amount: 2, ref: 'r' }] };
  const content = { type: CREDIT_POST.distribution, content: { distribution } };
  const timestamp = Math.floor(Date.now() / 1000) - 500;
  const draft = { type: 'POST', channel: CREDIT_CHANNEL, content, timestamp } as const;
  assert.equal((await core.send(credit, draft)).status, 200);
  const large = randomBytes(6 * MIB);
  assert.deepEqual(await refuse('/ipfs/add_file', unpaid, large), [402, 'CREDIT_INSUFFICIENT']);
  assert.equal((await add('/ipfs/add_file', unpaid, bytes)).status, 200);
});

test('ipfs/add_file takes the message of its file', async () => {
  await using core = await createTestCore();
  const bytes = Buffer.from('hello world\n');
  const cid = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
  const metadata = JSON.stringify({ message: storeMessage(cid), sync: true });
  const kept = await addFile(core, '/ipfs/add_file', [
    ['metadata', metadata],
    ['file', bytes],
  ]);
  assert.deepEqual([kept.status, kept.body], [200, { status: 'success', hash: cid, name: cid, size: 12 }]);
  assert.deepEqual((await core.get(`/storage/raw/${cid}`)).body, bytes);
  assert.equal((await core.get(`/storage/count/${cid}`)).body, 1);
  const wrong = await addFile(core, '/ipfs/add_file', [
    ['metadata', metadata],
    ['file', Buffer.from('x')],
  ]);
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'HASH_MISMATCH']);
});

test('a name stands for its newest file, a first version for its newest one', async () => {
  await using core = await createTestCore();
  const versions = ['one', 'two', 'three'].map((text) => Buffer.from(text));
  const first = storeMessage(sha256(versions[0]!), {}, 1_700_000_000);
  const second = storeMessage(sha256(versions[1]!), { ref: first.item_hash }, 1_700_000_100);
  const named = storeMessage(sha256(versions[2]!), { ref: 'my file' }, 1_700_000_200);
  for (const [index, message] of [first, second, named].entries())
    await addFile(core, '/storage/add_file', [
      ['metadata', JSON.stringify({ message })],
      ['file', versions[index]!],
    ]);
  const byRef = await core.get(`/storage/by-ref/${first.item_hash}`);
  assert.equal(byRef.body.file_hash, sha256('two'));
  const byName = await core.get(`/storage/by-ref/${alice.address}/my%20file`);
  assert.equal(byName.body.file_hash, sha256('three'));
  assert.equal((await core.get(`/storage/by-ref/${bob.address}/my%20file`)).body.code, 'FILE_NOT_FOUND');
  assert.equal((await core.get('/storage/by-ref/nothing')).body.code, 'INVALID_HASH');
});

test('a message whose content is on IPFS comes into force when the content does', async () => {
  await using core = await createTestCore();
  const content = JSON.stringify({
    address: alice.address,
    time: 1_700_000_000,
    type: 'note',
    content: { n: 1 },
  });
  const added = await core.post('/ipfs/add_json', content);
  const cid = added.body.hash as string;
  const text = `ETH\n${alice.address}\nPOST\n${cid}`;
  const message = {
    chain: 'ETH',
    sender: alice.address,
    type: 'POST',
    time: 1_700_000_000,
    item_type: 'ipfs',
    item_hash: cid,
    signature: alice.sign(text),
  };
  const sent = await core.post('/messages', JSON.stringify({ message, sync: true }));
  assert.deepEqual([sent.status, sent.body.message_status], [200, 'processed'], JSON.stringify(sent.body));
  assert.deepEqual((await core.get(`/messages/${cid}`)).body.content.content, { n: 1 });
});
