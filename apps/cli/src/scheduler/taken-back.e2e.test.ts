import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { startCore } from '../testing/core.ts';
import { canHoldAddresses, FakeNode } from './testing/nodes.ts';
import { createPlaced, ownerOf, schedule, takeBack, waitForPlace } from './testing/scene.ts';

/** Costs about ten CPU seconds. */
test('a placement that is taken back moves no instance: neither while its scheduler runs, nor while none does', {
  skip: canHoldAddresses ? false : 'needs root on Linux',
}, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-taken-back-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const signer = createSigner(await loadOrCreateKeyFile(join(dir, 'a', 'key')));
  const core = stack.use(await startCore(dir, { SKERRY_CORE_SCHEDULERS: signer.address }));
  const nodes = [new FakeNode(), new FakeNode()].map((node) => stack.use(node));
  for (const node of nodes) await (await (await node.listen()).hold()).announce(core.url);
  let id = '';
  {
    await using _scheduler = await schedule(dir, 'a', core.url, nodes);
    const first = await createPlaced(core.url, 'first');
    const second = await createPlaced(core.url, 'second');
    assert.notEqual(first.node_id, second.node_id);
    // From here on, a scheduler that places the second anew gives it the first node.
    await ownerOf(core.url).forget([first.instance_id]);
    id = second.instance_id;
    await takeBack(core.url, signer, (one) => one === id);
    const after = await waitForPlace(core.url, id);
    assert.deepEqual([after.node_id, after.ipv6], [second.node_id, second.ipv6]);
    nodes.sort((a, b) => Number(a.nodeId !== second.node_id) - Number(b.nodeId !== second.node_id));
  }
  await takeBack(core.url, signer, (one) => one === id);
  assert.equal((await ownerOf(core.url).getInstance(id)).node_id, null);
  // It knows nothing but what the core node has.
  await using _scheduler = await schedule(dir, 'a', core.url, nodes);
  assert.equal((await waitForPlace(core.url, id)).node_id, nodes[0]!.nodeId);
});
