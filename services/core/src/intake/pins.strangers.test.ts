import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import { clearMessages } from '../testing/clear.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

const { alice } = signers;
const T0 = 1_700_000_000;

describe('files that messages keep', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  async function keep(text: string): Promise<string> {
    const blob = await core.blobs.receive(Readable.from([Buffer.from(text)]), 4_000_000);
    await core.rooms.files.storeUnpinned(blob, 'text/plain');
    await blob.discard();
    return sha256Hex(text);
  }
  /** A STORE whose content is a file, which is kept here. */
  async function storeByFile(fileHash: string) {
    const content = { address: alice.address, time: T0, item_type: 'storage', item_hash: fileHash };
    const itemHash = await keep(JSON.stringify(content));
    const message = {
      ...{ chain: 'ETH', sender: alice.address, type: 'STORE', time: T0, item_type: 'storage' },
      ...{ item_hash: itemHash, signature: alice.sign(`ETH\n${alice.address}\nSTORE\n${itemHash}`) },
    };
    return { itemHash, body: JSON.stringify({ message }) };
  }
  const pins = async () =>
    (await core.rooms.db.selectFrom('file_pins').select(['file_hash', 'message_hash']).execute())
      .map((pin) => `${pin.file_hash} ${pin.message_hash}`)
      .toSorted();

  test('the content of a STORE that is a file is kept as the file is that the STORE names', async () => {
    const file = await keep('a file');
    const store = await storeByFile(file);
    assert.equal((await core.post('/messages', store.body)).status, 200);
    assert.deepEqual(
      await pins(),
      [`${file} ${store.itemHash}`, `${store.itemHash} ${store.itemHash}`].toSorted(),
    );
    const { body: owned } = await core.get(`/addresses/${alice.address}/files`);
    assert.deepEqual(
      owned.files.map((one: { file_hash: string }) => one.file_hash),
      [file],
    );
    await core.send(alice, { type: 'FORGET', content: { hashes: [store.itemHash] } });
    await core.rooms.pipeline.idle();
    assert.deepEqual(await pins(), []);
  });

  test('messages that come together bring no more contents into memory than a few', async () => {
    await clearMessages(core);
    const { peer } = core.rooms.intake;
    const frames = [];
    for (const n of [1, 2, 3]) {
      const content = { address: alice.address, time: T0 + n, type: 'note', content: 'x'.repeat(3_000_000) };
      const itemHash = await keep(JSON.stringify(content));
      const message = {
        ...{ chain: 'ETH', sender: alice.address, type: 'POST', time: T0 + n, item_type: 'storage' },
        ...{ item_hash: itemHash, signature: alice.sign(`ETH\n${alice.address}\nPOST\n${itemHash}`) },
      };
      frames.push(Buffer.from(JSON.stringify({ message, noted_ms: (T0 + n) * 1000 })));
    }
    const read = await peer.read(frames);
    const isRead = read.map((one) => 'accepted' in one && one.accepted.message.content !== null);
    assert.deepEqual(isRead, [true, true, false]);
    await peer.keep(read);
    await core.rooms.pipeline.idle();
    const rows = await core.rooms.db.selectFrom('messages').select(['status']).execute();
    assert.deepEqual(
      rows.map(({ status }) => status),
      ['processed', 'processed', 'processed'],
    );
  });

  test('a content that comes after its message is dated as one that was here before', async () => {
    await clearMessages(core);
    const statusOf = async (hash: string) => (await core.get(`/messages/${hash}/status`)).body;
    for (const [isFirst, ahead, code] of [
      [true, 3_600, undefined],
      [false, 3_600, undefined],
      [false, 10 ** 9, 'TIMESTAMP_IN_FUTURE'],
    ] as const) {
      // Later than the time beside it, which nothing covers.
      const note = { type: 'note', content: `${isFirst} ${ahead}` };
      const content = JSON.stringify({ address: alice.address, time: T0 + ahead, ...note });
      const itemHash = sha256Hex(content);
      const message = {
        ...{ chain: 'ETH', sender: alice.address, type: 'POST', time: T0, item_type: 'storage' },
        ...{ item_hash: itemHash, signature: alice.sign(`ETH\n${alice.address}\nPOST\n${itemHash}`) },
      };
      const send = () => core.post('/messages', JSON.stringify({ message }));
      if (isFirst) await keep(content);
      await send();
      if (!isFirst) await keep(content);
      await core.rooms.pipeline.idle();
      const { status, reason } = await statusOf(itemHash);
      assert.deepEqual([status, reason?.code], [code ? 'rejected' : 'processed', code]);
    }
  });

  test('what a program keeps follows from the program, whatever message of that name came before it', async () => {
    const looks = [];
    for (const isStoreFirst of [true, false]) {
      await clearMessages(core);
      const store = await storeByFile(await keep('another file'));
      const content = { name: 'p', code: store.itemHash, runtime: 'nodejs', memory: 128, timeout: 5 };
      const program = signMessage({ type: 'PROGRAM', content, timestamp: T0, nonce: '1' }, alice);
      const both = [store.body, program.body];
      for (const body of isStoreFirst ? both : both.toReversed())
        assert.equal((await core.post('/messages', body)).status, 200);
      await core.rooms.pipeline.idle();
      looks.push(await pins());
    }
    assert.deepEqual(looks[1], looks[0]);
  });
});
