import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { NETWORK_POST, parseVrfRequest } from '@skerry/protocol';
import { createTestCore, signers } from '../../testing/core.ts';
import { knownFromRegistry, publishVrfKeys } from './published-keys.ts';
import { openRandomness } from './randomness.ts';

const request = parseVrfRequest({ seed: 'published', min: 1, max: 100, count: 2 });

describe("the node's key in the node registry", () => {
  test('is told once, and again when it changed', async () => {
    await using core = await createTestCore();
    const { rooms } = core;
    assert.equal(await rooms.announce(), 'published');
    assert.equal(await rooms.announce(), 'unchanged');
    const { body } = await core.get(
      `/messages.json?contentTypes=${NETWORK_POST.coreNode}&addresses=${rooms.nodeAddress}`,
    );
    assert.equal(body.messages.length, 1);
    const keys = (await core.get('/vrf/keys')).body;
    assert.equal(keys.node_address, rooms.nodeAddress);
    assert.deepEqual(body.messages[0].content.content.vrf_keys, keys.keys);
  });

  test('makes the answers of a trusted node verify elsewhere, also after it was retired and is told no more', async () => {
    await using core = await createTestCore();
    const { db, intake, randomness } = core.rooms;
    const dataDir = await mkdtemp(join(tmpdir(), 'skerry-vrf-'));
    const other = (epoch: number) => openRandomness({ dataDir, epoch, nowSeconds: epoch });
    try {
      const first = await other(1);
      const old = first.generate(request);
      const code = async () => {
        const verdict = await randomness.verify(old);
        return verdict.valid || verdict.reason.code;
      };
      assert.equal(await code(), 'VRF_KEY_UNKNOWN');
      let nowMs = Date.now();
      const publish = (signer: (typeof signers)['node'], { keys }: Pick<typeof first, 'keys'>) =>
        publishVrfKeys({ db, intake, signer, keys, now: () => nowMs++ });
      await publish(signers.alice, first);
      assert.equal(await code(), 'VRF_KEY_UNKNOWN', 'anybody may say so, and it counts for nothing');
      await publish(signers.node, first);
      assert.equal(await code(), true);
      const second = await other(2);
      assert.equal(await publish(signers.node, second), 'published');
      await publish(signers.node, { keys: second.keys.slice(0, 1) });
      assert.equal(await code(), true);
      assert.equal((await randomness.verify(second.generate(request))).valid, true);
      const known = knownFromRegistry(db, new Set([signers.node.address]));
      const { suite, public_key: key } = first.keys[0]!;
      assert.equal((await known.find(suite, key))?.until, 2);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  test('an announcement of another form is refused', async () => {
    await using core = await createTestCore();
    const content = { type: NETWORK_POST.coreNode, content: { vrf_keys: [], announced_at_ms: 1 } };
    assert.equal((await core.send(signers.node, { type: 'POST', content })).status, 400);
  });
});
