import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { ANY_TIME, verifySubmission } from '@skerry/protocol';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir, RUNNING } from '../testing/run.ts';

const { instance_id: ID } = RUNNING;

/** A core node that takes every message, and from then on answers no question any more, unless it is to go on as before. */
async function startForgetful(instances: readonly object[], goesOn = false) {
  let taken: string | undefined;
  async function take({ req: request }: ServerResponse) {
    const { itemHash: item_hash } = verifySubmission(await text(request), ANY_TIME);
    taken = item_hash;
    return JSON.stringify({ item_hash, status: 'success', instance_id: item_hash, ipv6: '' });
  }
  const core = await replying(({ pathname }, response) => {
    if (response.req.method === 'POST' || response.req.method === 'PUT') {
      void take(response).then((answer) => response.end(answer));
      return response;
    }
    if (taken !== undefined && !goesOn) {
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
    takenHash: () => taken,
    run: (...args: string[]) => skerryHere(variables, args),
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
  for (const [args, what] of [
    [['delete', ID, '--yes', '--erase'], 'web was deleted'],
    [['start', ID], `instance ${ID} was asked to start`],
    [['restart', ID, '--wait'], `instance ${ID} was asked to restart`],
    [['update', ID, '--description', 'new'], `instance ${ID} was changed`],
  ] as const) {
    await using core = await startForgetful([RUNNING]);
    const { error, hint, details } = await core.fail('instance', ...args);
    assert.ok(error.startsWith(`${what}, but `), error);
    assert.deepEqual([details.instance_id, details.item_hash], [ID, core.takenHash()]);
    assert.match(hint, new RegExp(`"skerry instance (erase ${ID}|show ${ID.slice(0, 12)})"`));
  }
});

test('what an instance was asked for and nobody waits for is said beside its status, which is that of before', async () => {
  await using core = await startForgetful([RUNNING], true);
  for (const action of ['stop', 'restart']) {
    const { out, err, code } = await core.run('instance', action, ID);
    assert.equal(code, 0, err);
    assert.match(out, /^status: running$/m);
    const said = `it was asked to ${action}: "skerry instance show ${ID.slice(0, 12)}" tells how it is, and --wait waits for it\n`;
    assert.ok(err.endsWith(said), err);
  }
  const running = await core.run('instance', 'start', ID);
  assert.equal(running.code, 0, running.err);
  assert.doesNotMatch(running.err, /was asked to/);
});

test('an instance that was created is told where this machine cannot remember it, and nobody answers', async () => {
  await using core = await startForgetful([]);
  // Where records of instances would be.
  await writeFile(join(core.home, 'config', 'instances'), '');
  const key = join(core.home, 'key.pub');
  await writeFile(key, `ssh-ed25519 ${'A'.repeat(68)} me`);
  const { error, details } = await core.fail('instance', 'create', '--name', 'web', '--ssh-key', key);
  const id = core.takenHash();
  assert.ok(error.startsWith(`instance ${id} was created, but `), error);
  assert.deepEqual([details.instance_id, details.item_hash], [id, id]);
});
