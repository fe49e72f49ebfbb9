import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  buildNetworkMessage,
  CoreClient,
  createSigner,
  generatePrivateKey,
  publishMessage,
  type Signer,
} from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { type InstanceView, LIMITS, NETWORK_CHANNEL, NETWORK_POST, nodeIdOf } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { until } from '../testing/shell.ts';
import { canHoldAddresses, FakeNode } from './testing/nodes.ts';
import { createPlaced, schedule, TIMEOUT_MS, takeBack } from './testing/scene.ts';

/** Of three bytes a character: a message that has them is longer than LIMITS.listedBodyBytes. */
const LONG_TAGS = Array.from({ length: LIMITS.tags }, (_, index) =>
  String(index).padEnd(LIMITS.tagChars, '好'),
);

/** Places an instance on a node of the thief's, dated as the thief likes, and signed in either form, or with a text that is too long for lists. */
function steal(
  coreUrl: string,
  signer: Signer,
  { instance_id }: InstanceView,
  dated: { timestamp: number; decidedAtMs: number },
  form: 'envelope' | 'network' | 'long' = 'envelope',
) {
  const node_address = createSigner(generatePrivateKey()).address;
  const content = {
    ...{ instance_id, node_id: nodeIdOf(node_address), node_address, ipv6: 'fd00::bad' },
    ...{ reason: null, decided_at_ms: dated.decidedAtMs },
  };
  const post = { type: NETWORK_POST.allocation, content };
  const more = form === 'long' ? { tags: LONG_TAGS } : {};
  const draft = { type: 'POST', channel: NETWORK_CHANNEL.scheduling, content: { ...post, ...more } };
  if (form !== 'network')
    return new CoreClient({ url: coreUrl, signer }).postMessage({ ...draft, timestamp: dated.timestamp });
  const { body } = buildNetworkMessage({ ...draft, time: dated.timestamp, sync: true }, signer);
  return publishMessage(coreUrl, body);
}

const placeOf = ({ node_id, node_address, ipv6, placed }: InstanceView) => ({
  node_id,
  node_address,
  ipv6,
  placed,
});

/** Costs about ten CPU seconds. */
test('the key of a scheduler leaks: another one adopts its placements, the lists change, and no instance moves', {
  skip: canHoldAddresses ? false : 'needs root on Linux',
}, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-adopt-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const keyOf = async (name: string) => createSigner(await loadOrCreateKeyFile(join(dir, name, 'key')));
  const [old, next] = [await keyOf('old'), await keyOf('new')];
  const open = async (scheduler: string) => startCore(dir, { SKERRY_CORE_SCHEDULERS: scheduler });
  const nodes = [new FakeNode(), new FakeNode()].map((node) => stack.use(node));
  const placed: InstanceView[] = [];
  let seconds = 0;
  {
    await using core = await open(old.address);
    for (const node of nodes) await (await (await node.listen()).hold()).announce(core.url);
    {
      await using _scheduler = await schedule(dir, 'old', core.url, nodes);
      for (const name of ['a', 'b', 'c', 'd']) placed.push(await createPlaced(core.url, name));
    }
    assert.equal(
      new Set(placed.map(({ node_id }) => node_id)).size,
      2,
      'the instances are spread over both nodes',
    );
    seconds = Math.floor(Date.now() / 1000);
    // Whoever has the key moves one, and with a date of before the leak the same and another.
    const decidedAtMs = Date.now() + 1_000;
    await steal(core.url, old, placed[0]!, { timestamp: seconds + 1, decidedAtMs });
    await steal(core.url, old, placed[0]!, { timestamp: seconds - 3_600, decidedAtMs }, 'network');
    await steal(core.url, old, placed[0]!, { timestamp: seconds - 3_600, decidedAtMs }, 'long');
    await steal(core.url, old, placed[1]!, { timestamp: seconds - 3_600, decidedAtMs });
    const reader = new CoreClient({ url: core.url });
    const nodeOf = async ({ instance_id: id }: InstanceView) => (await reader.getInstance(id)).node_id;
    // And takes back what was said of a third and of one that was moved, before anybody adopts.
    await takeBack(core.url, old, (id) => id === placed[2]!.instance_id || id === placed[1]!.instance_id);
    const stolen = await Promise.all(placed.map(nodeOf));
    assert.deepEqual(
      stolen.map((nodeId, index) => nodeId === placed[index]!.node_id),
      [false, false, false, true],
    );
    assert.deepEqual([stolen[1], stolen[2]], [null, null]);

    const adopt = async (...more: string[]) => {
      const given = ['--until', String(seconds), '--key-file', join(dir, 'new', 'key'), '--json', ...more];
      const environment = { SKERRY_HOME: join(dir, 'home'), SKERRY_CORE_URL: core.url };
      const { out, err, code } = await skerryHere(environment, ['scheduler', 'adopt', old.address, ...given]);
      assert.equal(code, 0, err);
      const { signed, signed_before: before, differences, schedulers } = JSON.parse(out);
      assert.deepEqual(
        [new Set(differences.map((one: { instance_id: string }) => one.instance_id)), schedulers],
        [new Set(placed.slice(0, 3).map((one) => one.instance_id)), [next.address]],
      );
      return [signed.length, before];
    };
    assert.deepEqual(await adopt('--dry-run'), [4, 0]);
    assert.deepEqual(await adopt(), [4, 0]);
    assert.deepEqual(await adopt(), [0, 4]);
    // As long as core nodes trust the old key, nothing has changed.
    assert.deepEqual(await Promise.all(placed.map(nodeOf)), stolen);
    // Whoever has it can take all of its placements back: those that were adopted before are not its own.
    await takeBack(core.url, old, () => true);
    assert.deepEqual(await Promise.all(placed.map(nodeOf)), [null, null, null, null]);
  }

  await using core = await open(next.address);
  const reader = new CoreClient({ url: core.url });
  const isBack = async (one: InstanceView) =>
    JSON.stringify(placeOf(await reader.getInstance(one.instance_id))) === JSON.stringify(placeOf(one));
  await until('all are where they were', TIMEOUT_MS, async () =>
    (await Promise.all(placed.map(isBack))).every(Boolean),
  );
  await using _scheduler = await schedule(dir, 'new', core.url, nodes);
  await createPlaced(core.url, 'e');
  for (const one of placed) assert.ok(await isBack(one), `${one.name} stays`);
});
