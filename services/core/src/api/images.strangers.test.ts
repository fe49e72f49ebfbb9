import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createTestCore, instanceContent, signers } from '../testing/core.ts';

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
  for (const image of ['debian:13', 'ubuntu', 'a'.repeat(64)]) {
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
