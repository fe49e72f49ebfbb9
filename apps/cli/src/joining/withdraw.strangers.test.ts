import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { NETWORK_POST } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { lying } from '../testing/lying.ts';
import { createTestDir } from '../testing/run.ts';

const ANNOUNCEMENT = {
  ...{ url: 'http://192.0.2.1:4029', ipv6_prefix: '2001:db8::/64', features: [], version: '1', reason: null },
  capacity: { cpu: 1, memory_mib: 1, disk_gib: 1 },
};

test('a node that leaves takes back what it announced, and nothing else that a core node lists', async () => {
  await using home = await createTestDir();
  await using core = await startCore(home.path);
  const dataDir = join(home.path, 'data', 'compute');
  await mkdir(dataDir, { recursive: true });
  const key = generatePrivateKey();
  await writeFile(join(dataDir, 'node.key'), `${key}\n`, { mode: 0o600 });
  const node = new CoreClient({ url: core.url, signer: createSigner(key) });
  const post = async (type: string, content: object) =>
    (await node.postMessage({ type: 'POST', content: { type, content } })).item_hash;
  const kept = await post('note', {});
  const announced = [
    await post(NETWORK_POST.node, { ...ANNOUNCEMENT, announced_at_ms: 1 }),
    await post(NETWORK_POST.node, { ...ANNOUNCEMENT, announced_at_ms: 2 }),
  ];
  const leave = async (url: string) => {
    const environment = { SKERRY_HOME: home.path, SKERRY_COMPUTE_PORT: '1', SKERRY_COMPUTE_CORE_URL: url };
    return skerryHere(environment, ['leave', '--role', 'compute', '--yes', '--json']);
  };
  const statusOf = async (hash: string) => (await node.getMessageStatus(hash)).status;

  const listed = await fetch(`${core.url}/api/v0/messages.json?hashes=${kept}&bodies=shared`);
  const [note] = (await listed.json()).messages;
  assert.equal(note.item_hash, kept);
  for (const lie of [
    (row: object) => ({ ...row, item_hash: kept }),
    () => note,
    (row: object) => ({ ...note, content: (row as { content: unknown }).content }),
  ]) {
    await using liar = await lying(core.url, (path, answer) => {
      if (path.startsWith('/api/v0/messages.json'))
        return { ...answer, messages: [...answer.messages, lie(answer.messages[0])] };
      // Of nodes that list posts.
      return answer.posts ? { ...answer, posts: [{ ...answer.posts[0], original_item_hash: kept }] } : answer;
    });
    const { code, out, err } = await leave(liar.url);
    assert.deepEqual(liar.sent, []);
    assert.deepEqual([code, out, JSON.parse(err).code], [5, '', 'UNEXPECTED_ANSWER'], err);
  }
  const { code, out, err } = await leave(core.url);
  assert.equal(code, 0, err);
  assert.equal(JSON.parse(out).withdrawn, 2);
  assert.deepEqual(
    [await statusOf(kept), ...(await Promise.all(announced.map(statusOf)))],
    ['processed', 'forgotten', 'forgotten'],
  );
});
