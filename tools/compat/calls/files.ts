import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import type { Loose } from '../sdk.ts';
import type { World } from '../world.ts';

const TEXT = 'what a client of the deployed network stores';

const store = (world: World, more: object) =>
  world.client('StoreMessageClient').send({
    account: world.account,
    channel: world.channel,
    sync: true,
    ...more,
  });

/** Of a STORE: the upload's answer names the file, that of a message the message. */
const fileHashOf = (sent: Loose): string => sent.hash ?? sent.content.item_hash;

async function checkFile(world: World, hash: string): Promise<void> {
  const bytes = await world.client('StoreMessageClient').download(hash);
  assert.equal(Buffer.from(bytes).toString(), TEXT);
}

const looksUp = (method: string, asked: string, check: (found: Loose, world: World) => void): Call => ({
  name: `store.${method}`,
  async run(world) {
    check(await world.client('StoreMessageClient')[method](world.noted(asked)), world);
  },
});

export const fileCalls: readonly Call[] = [
  {
    name: 'store.send, storage, bytes',
    async run(world) {
      const sent = await store(world, { fileObject: Buffer.from(TEXT) });
      const hash = fileHashOf(sent);
      assert.match(hash, /^[0-9a-f]{64}$/);
      world.note('file', hash);
    },
  },
  {
    name: 'store.send, storage, bytes with a line end',
    theirs: 'older SDKs send bytes as the text of a form, in which line ends are written otherwise',
    async run(world) {
      await store(world, { fileObject: Buffer.from(`${TEXT}\n`) });
    },
  },
  {
    name: 'store.send, storage, a File',
    async run(world) {
      await store(world, { fileObject: new File([`${TEXT}2`], 'a.txt') });
    },
  },
  {
    name: 'store.download',
    run: async (world) => checkFile(world, world.noted('file')),
  },
  {
    name: 'http.downloadFile',
    async run(world) {
      const bytes = await world.client('AlephHttpClient').downloadFile(world.noted('file'));
      assert.equal(Buffer.from(bytes).toString(), TEXT);
    },
  },
  {
    name: 'store.send, ipfs, bytes',
    async run(world) {
      const sent = await store(world, { fileObject: Buffer.from(TEXT), storageEngine: 'ipfs' });
      const hash = fileHashOf(sent);
      assert.match(hash, /^(Qm|bafy)/);
      world.note('cid', hash);
      world.note('store', sent.item_hash);
      await checkFile(world, hash);
    },
  },
  {
    name: 'store.pin, a file that is here',
    async run(world) {
      const { item_hash } = await world.client('StoreMessageClient').pin({
        account: world.account,
        channel: world.channel,
        fileHash: world.noted('cid'),
      });
      assert.match(item_hash, /^[0-9a-f]{64}$/);
    },
  },
  {
    name: 'store.pin, a file that only the public IPFS has',
    async run(world) {
      const { item_hash } = await world.client('StoreMessageClient').pin({
        account: world.account,
        channel: world.channel,
        fileHash: 'QmYULJoNGPDmoRq4WNWTDTUvJGJv1hosox8H6vVd1kCsY8',
      });
      assert.match(await world.statusOf(item_hash), /^(pending|processed)$/);
    },
  },
  looksUp('getFile', 'file', (found, world) => {
    assert.deepEqual([found.status, found.hash, found.engine], ['success', world.noted('file'), 'storage']);
    assert.equal(Buffer.from(found.content, 'base64').toString(), TEXT);
  }),
  looksUp('getFileMetadata', 'file', (found) => assert.equal(found.size, TEXT.length)),
  looksUp('getFileMetadataByMessageHash', 'store', (found, world) =>
    assert.deepEqual([found.file_hash, found.owner], [world.noted('cid'), world.account.address]),
  ),
  looksUp('getFileMetadataByRef', 'store', (found, world) =>
    assert.equal(found.file_hash, world.noted('cid')),
  ),
  looksUp('getFilePinsCount', 'cid', (count) => assert.ok(count >= 1, `${count} pins`)),
  {
    name: 'store.getEstimatedCost',
    async run(world) {
      const cost = await world.client('StoreMessageClient').getEstimatedCost({
        account: world.account,
        channel: world.channel,
        fileObject: Buffer.from(TEXT),
        payment: { chain: 'ETH', type: 'credit' },
      });
      assert.match(cost.cost, /^\d+\.\d{18}$/);
    },
  },
];
