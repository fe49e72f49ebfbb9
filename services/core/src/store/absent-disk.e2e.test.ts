import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createSigner, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sha256Hex } from '@skerry/protocol';
import { type NodeProcess, startNode } from '../testing/node.ts';
import { mountSmallDisks, NO_MOUNTS } from '../testing/small-disks.ts';

const SIZE_MIB = 512;
const alice = createSigner(`0x${'a1'.repeat(32)}`);

async function diskCheck({ url }: NodeProcess) {
  const { status, checks } = (await (await fetch(`${url}/health`)).json()) as {
    status: string;
    checks: { disk: { reason?: string; takes_writes: boolean } };
  };
  const { reason = '', takes_writes } = checks.disk;
  return { status, reason, takes_writes };
}

async function store({ url }: NodeProcess, text: string) {
  const form = new FormData();
  const hash = sha256Hex(Buffer.from(text));
  form.append('address', alice.address);
  form.append('signature', alice.sign(hash));
  form.append('file', new Blob([text]));
  const response = await fetch(`${url}/api/v0/storage/store`, { method: 'POST', body: form });
  return { status: response.status, code: ((await response.json()) as { code?: string }).code, hash };
}

async function read({ url }: NodeProcess, hash: string) {
  const response = await fetch(`${url}/api/v0/storage/raw/${hash}`);
  const text = await response.text();
  return response.status === 200 ? text : `${response.status} ${(JSON.parse(text) as { code: string }).code}`;
}

async function post({ url }: NodeProcess): Promise<number> {
  const { body } = signMessage({ type: 'POST', content: { type: 'note', content: {} } }, alice);
  const headers = { 'content-type': 'application/json' };
  return (await fetch(`${url}/api/v0/messages`, { method: 'POST', headers, body })).status;
}

const AWAY = '503 STORAGE_UNAVAILABLE';

test('a disk of files that is not mounted is no lost files: none is served, taken or fetched, also after a start, until it is there again', {
  skip: NO_MOUNTS,
}, async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-absent-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const [disk, files] = [join(home, 'disk'), join(home, 'data', 'core', 'files')];
  for (const directory of [disk, files]) await mkdir(directory, { recursive: true });
  await using disks = await mountSmallDisks([disk], home, SIZE_MIB);
  const run = (...command: string[]) => execFileSync('nsenter', [disks.namespace, ...command]);
  run('mount', '--bind', disk, files);
  let core = await disks.start();
  t.after(() => core.end('SIGKILL'));
  const { status, hash } = await store(core, 'before');
  assert.deepEqual([status, await read(core, hash)], [200, 'before']);

  run('umount', '--lazy', files);
  const check = async () => {
    // At once, before anybody looked whether it is there.
    assert.equal(await read(core, hash), AWAY);
    const refused = await store(core, 'while it is away');
    assert.equal(`${refused.status} ${refused.code}`, AWAY);
    const seen = await until(
      'health says it',
      () => diskCheck(core),
      ({ takes_writes }) => !takes_writes,
    );
    assert.equal(seen.status, 'degraded');
    assert.match(
      seen.reason,
      /^the files are not here \(.*\/files has no store-id, .* is their disk mounted\?\)/,
    );
    assert.equal(await post(core), 200);
    assert.deepEqual(await readdir(files), [], 'nothing is done in the directory below');
  };
  await check();
  await core.end('SIGTERM');
  core = await disks.start();
  await check();

  run('mount', '--bind', disk, files);
  await until(
    'it is well',
    () => diskCheck(core),
    ({ status: all, takes_writes }) => all === 'ok' && takes_writes,
  );
  assert.equal(await read(core, hash), 'before');
  assert.equal((await store(core, 'after')).status, 200);
  await core.end('SIGTERM');
});

test('files that are gone for good are begun anew where the operator says so, and those of another node are not taken for them', async (t) => {
  const [home, other] = [
    await mkdtemp(join(tmpdir(), 'skerry-a-')),
    await mkdtemp(join(tmpdir(), 'skerry-b-')),
  ];
  const filesOf = (of: string) => join(of, 'data', 'core', 'files');
  await (await startNode(other)).end('SIGTERM');
  let core = await startNode(home);
  t.after(async () => {
    await core.end('SIGKILL');
    for (const one of [home, other]) await rm(one, { recursive: true, force: true });
  });
  const { hash } = await store(core, 'before');
  await core.end('SIGTERM');
  await rm(filesOf(home), { recursive: true });
  await cp(filesOf(other), filesOf(home), { recursive: true });
  core = await startNode(home);
  assert.match((await diskCheck(core)).reason, /is not the directory of this node's files/);
  assert.equal(await read(core, hash), AWAY);
  await core.end('SIGTERM');
  core = await startNode(home, undefined, { SKERRY_CORE_LOST_KEYS: 'files/store-id' });
  assert.deepEqual(
    [await read(core, hash), (await store(core, 'after')).status],
    ['404 FILE_NOT_FOUND', 200],
  );
  await core.end('SIGTERM');
  core = await startNode(home);
  assert.equal((await diskCheck(core)).reason, '');
  await core.end('SIGTERM');
});

test('the first start after an upgrade takes no empty directory for that of the files that the database knows', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-upgraded-'));
  await using database = await createTestDatabase({ log: createLogger('test', 'silent') });
  const files = join(home, 'data', 'core', 'files');
  let core = await startNode(home, database.url);
  t.after(async () => {
    await core.end('SIGKILL');
    await rm(home, { recursive: true, force: true });
  });
  const { hash } = await store(core, 'before');
  await core.end('SIGTERM');
  // As the release before left it, which noted nothing, and named whatever directory it found.
  await database.pool.query("delete from key_files where name = 'files/store-id'");
  await rename(files, `${files}-away`);
  await mkdir(files);
  await writeFile(join(files, 'store-id'), 'of the directory below');

  core = await startNode(home, database.url);
  const { reason, takes_writes } = await diskCheck(core);
  assert.match(reason, /\/files has none of the files that the database of this node knows: is their disk/);
  const refused = await store(core, 'while it is away');
  assert.deepEqual(
    [takes_writes, refused.code, await read(core, hash)],
    [false, 'STORAGE_UNAVAILABLE', AWAY],
  );
  assert.deepEqual(await readdir(files), ['store-id']);
  const noted = async () => {
    const text = "select fingerprint from key_files where name = 'files/store-id'";
    return (await database.pool.query(text)).rows.map(({ fingerprint }) => fingerprint);
  };
  assert.deepEqual(await noted(), []);

  await rm(files, { recursive: true });
  await rename(`${files}-away`, files);
  await until(
    'the files are here',
    () => read(core, hash),
    (text) => text === 'before',
  );
  assert.equal((await store(core, 'after')).status, 200);
  assert.deepEqual(await noted(), [(await readFile(join(files, 'store-id'), 'utf8')).trim()]);
  await core.end('SIGTERM');
});

test('files behind a link that leads nowhere are away, until it leads to them again', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-link-'));
  const [disk, files] = [join(home, 'disk'), join(home, 'data', 'core', 'files')];
  for (const directory of [disk, dirname(files)]) await mkdir(directory, { recursive: true });
  await symlink(disk, files);
  let core = await startNode(home);
  t.after(async () => {
    await core.end('SIGKILL');
    await rm(home, { recursive: true, force: true });
  });
  const { hash } = await store(core, 'before');
  for (const isStart of [false, true]) {
    if (isStart) await core.end('SIGTERM');
    await rename(disk, `${disk}-away`);
    if (isStart) core = await startNode(home);
    assert.equal(await read(core, hash), AWAY);
    const refused = await store(core, 'while it is away');
    assert.equal(`${refused.status} ${refused.code}`, AWAY);
    await rename(`${disk}-away`, disk);
    assert.equal(await read(core, hash), 'before');
    assert.equal((await store(core, 'after')).status, 200);
  }
  await core.end('SIGTERM');
});
