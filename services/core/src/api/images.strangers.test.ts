import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { DEPLOYED_IMAGES, sha256Hex } from '@skerry/protocol';
import { createTestCore, instanceContent, signers } from '../testing/core.ts';

test('an image by hash is refused while nobody has stored it; by its file or its message it is taken then', async () => {
  await using core = await createTestCore();
  const create = async (image: string) => {
    const draft = { type: 'INSTANCE', content: { ...instanceContent, image } };
    const { status, body } = await core.send(signers.alice, draft, '/instances');
    return [status, body.code];
  };
  const file = sha256Hex('a disk');
  const { itemHash, body } = signMessage(
    { type: 'STORE', content: { item_type: 'storage', item_hash: file } },
    signers.alice,
  );
  for (const hash of [file, itemHash]) assert.deepEqual(await create(hash), [400, 'UNKNOWN_IMAGE']);
  // Its file is not here yet.
  assert.equal((await core.post('/messages', body)).body.status, 'pending');
  assert.deepEqual(await create(itemHash), [200, undefined]);
  assert.equal((await core.post('/storage/add_json', '"a disk"')).status, 200);
  assert.deepEqual(await create(sha256Hex('"a disk"')), [200, undefined]);
});

test('an instance as SDKs make it: their usual disk, an image by its name, no key', async () => {
  await using core = await createTestCore();
  const create = async (ref: string) => {
    const content = {
      allow_amend: false,
      resources: { vcpus: 1, memory: 128, seconds: 30 },
      payment: { type: 'credit', chain: 'ETH' },
      environment: { internet: true, aleph_api: true, hypervisor: 'qemu' },
      rootfs: { parent: { ref, use_latest: true }, persistence: 'host', size_mib: 1_280 },
      volumes: [],
    };
    const { body, itemHash } = buildNetworkMessage({ type: 'INSTANCE', content }, signers.alice);
    const answer = await core.post('/messages', body);
    return { answer, view: (await core.get(`/instances/${itemHash}`)).body };
  };
  for (const ref of [Object.keys(DEPLOYED_IMAGES)[0]!, 'debian:12']) {
    const { view } = await create(ref);
    assert.deepEqual([view.image, view.ssh_key, view.disk, view.memory], [ref, '', 2, 128]);
  }
  for (const ref of ['f'.repeat(64), 'fedora']) {
    const { answer, view } = await create(ref);
    assert.deepEqual([answer.body.code, view.code], ['UNKNOWN_IMAGE', 'INSTANCE_NOT_FOUND']);
  }
});

test('S5: an image that does not exist is refused at once, with the names that do', async () => {
  await using core = await createTestCore();
  for (const image of ['fedora', 'debian-12', 'ubuntu-22.04', 'debian:11'])
    for (const path of ['/instances', '/messages']) {
      const draft = { type: 'INSTANCE', content: { ...instanceContent, image } };
      const { status, body } = await core.send(signers.alice, draft, path);
      assert.deepEqual([status, body.code], [400, 'UNKNOWN_IMAGE']);
      for (const name of ['debian:12', 'debian:13', 'ubuntu:24.04', 'by its hash'])
        assert.ok(body.error.includes(name), body.error);
    }
  for (const image of ['debian:13', 'ubuntu', ...Object.keys(DEPLOYED_IMAGES)]) {
    const draft = { type: 'INSTANCE', content: { ...instanceContent, image } };
    assert.equal((await core.send(signers.alice, draft, '/instances')).status, 200);
  }
  // What another node has in force is in force here: state follows from the messages alone.
  const { body, itemHash } = signMessage(
    { type: 'INSTANCE', content: { ...instanceContent, image: 'fedora' } },
    signers.alice,
  );
  const { peer } = core.rooms.intake;
  assert.equal((await peer.keep(await peer.read([Buffer.from(body)]))).taken, 1);
  assert.equal((await core.get(`/messages/${itemHash}/status`)).body.status, 'processed');
});
