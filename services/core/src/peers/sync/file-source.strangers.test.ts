import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLogger, listen } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { FileFetcher } from '../../store/files/fetcher.ts';
import { createTestCore, signers } from '../../testing/core.ts';
import { createPeerFileSource } from './file-source.ts';

const { alice, bob } = signers;
const log = createLogger('test', 'silent');
const { signal } = new AbortController();
const store = (hash: string) => ({ type: 'STORE', content: { item_type: 'storage', item_hash: hash } });

test('a peer is not blamed for the file of a STORE message by whose hash somebody names one', async () => {
  await using holder = await createTestCore();
  await using core = await createTestCore();
  const { files } = holder.rooms;
  const blob = await files.receive(Readable.from([Buffer.from('a file')]));
  await files.storeUnpinned(blob, 'text/plain');
  const { body } = await holder.send(alice, store(sha256Hex('a file')));
  await core.send(bob, store(body.item_hash));
  let blamed = 0;
  const source = createPeerFileSource(await listen(holder.api, '127.0.0.1', 0), () => blamed++);
  const fetcher = new FileFetcher({ ...core.rooms, sources: [source], log });
  await fetcher.look(signal);
  await fetcher.idle();
  assert.equal(blamed, 0);
  // It gives the file of that message, and says which one it is.
  assert.equal((await holder.get(`/storage/${body.item_hash}`)).status, 200);
});
