import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir, RUNNING } from '../testing/run.ts';

const ITEM_HASH = 'd'.repeat(64);
const { instance_id: ID } = RUNNING;

/** A core node that takes every message, and from then on answers no question any more. */
async function startForgetful(instances: readonly object[]) {
  let isDone = false;
  const core = await replying(({ pathname }, response) => {
    if (response.req.method === 'POST' || response.req.method === 'PUT') {
      isDone = true;
      return { item_hash: ITEM_HASH, status: 'success', instance_id: ID, ipv6: '' };
    }
    if (isDone) {
      response.statusCode = 503;
      return { status: 'error', code: 'DATABASE_UNAVAILABLE', error: 'the database does not answer' };
    }
    if (pathname === '/api/v0/instances') {
      const pagination = { page: 1, per_page: 100, total: instances.length, total_pages: 1 };
      return { instances, pagination, next_cursor: null, cursor: '1' };
    }
    return pathname === `/api/v0/instances/${ID}` ? RUNNING : undefined;
  });
  const home = await createTestDir();
  const variables = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  await skerryHere(variables, ['key', 'new']);
  return {
    home: home.path,
    async fail(...args: string[]) {
      const { out, err, code } = await skerryHere(variables, [...args, '--json']);
      assert.deepEqual([out, code], ['', 5], err);
      return JSON.parse(err) as { error: string; hint: string; details: Record<string, string> };
    },
    async [Symbol.asyncDispose]() {
      await core[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

test('what fails once an instance was changed says that it was, and which one', async () => {
  const ids = { instance_id: ID, item_hash: ITEM_HASH };
  for (const [args, what] of [
    [['delete', ID, '--yes', '--erase'], 'web was deleted'],
    [['start', ID], `instance ${ID} was asked to start`],
    [['restart', ID, '--wait'], `instance ${ID} was asked to restart`],
    [['update', ID, '--description', 'new'], `instance ${ID} was changed`],
  ] as const) {
    await using core = await startForgetful([RUNNING]);
    const { error, hint, details } = await core.fail('instance', ...args);
    assert.ok(error.startsWith(`${what}, but `), error);
    assert.deepEqual({ ...details, ...ids }, details);
    assert.match(hint, new RegExp(`"skerry instance (erase ${ID}|show ${ID.slice(0, 12)})"`));
  }
});

test('an instance that was created is told where this machine cannot remember it, and nobody answers', async () => {
  await using core = await startForgetful([]);
  // Where records of instances would be.
  await writeFile(join(core.home, 'config', 'instances'), '');
  const key = join(core.home, 'key.pub');
  await writeFile(key, `ssh-ed25519 ${'A'.repeat(68)} me`);
  const { error, details } = await core.fail('instance', 'create', '--name', 'web', '--ssh-key', key);
  assert.ok(error.startsWith(`instance ${ID} was created, but `), error);
  assert.deepEqual([details.instance_id, details.item_hash], [ID, ITEM_HASH]);
});
