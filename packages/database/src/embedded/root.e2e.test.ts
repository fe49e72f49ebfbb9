import assert from 'node:assert/strict';
import { chmod, chown, cp, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { findPackageDir } from './binaries.ts';
import { NOBODY_ID } from './identity.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import {
  databaseDirectory,
  listServerProcesses,
  QUICK,
  query,
  readPolicy,
  SCHED_BATCH,
  startChild,
  temporaryDirectory,
} from './testing/processes.ts';

const log = createLogger('test', 'silent');

assert.equal(process.geteuid?.(), 0, 'these tests need root');

describe('root, where user namespaces are refused', () => {
  const refused = { log, settings: QUICK, userNamespaces: false };

  test('the server runs as nobody on the data directory where nobody can reach it', async () => {
    await using directory = await temporaryDirectory('data');
    await chmod(join(directory.path, '..'), 0o755);
    await using server = await startEmbeddedPostgres({ ...refused, dataDir: directory.path });
    assert.equal((await stat(join(directory.path, 'cluster'))).uid, NOBODY_ID);
    assert.deepEqual(await query(server.connection, 'select 1 as one'), [{ one: 1 }]);
  });

  test('else on a directory of the system; with a copy of the programs; its data is found again', async () => {
    await using hidden = await temporaryDirectory('data');
    await using system = await temporaryDirectory('system');
    await chmod(join(system.path, '..'), 0o755);
    const packageDir = join(hidden.path, '..', 'package');
    await cp(findPackageDir(), packageDir, { recursive: true, verbatimSymlinks: true });
    const options = { ...refused, dataDir: hidden.path, systemDir: system.path, packageDir };
    {
      await using server = await startEmbeddedPostgres(options);
      await query(server.connection, `create table island as select 'Iona' as name`);
    }
    assert.ok(!(await readdir(hidden.path)).includes('cluster'));
    // It stays there, and with nobody, on a kernel that has user namespaces after all.
    await using server = await startEmbeddedPostgres({ ...options, userNamespaces: true });
    assert.deepEqual(await query(server.connection, 'select name from island'), [{ name: 'Iona' }]);
  });

  test('a database made in a user namespace is handed over', async () => {
    await using directory = await databaseDirectory('data');
    await assert.rejects(startEmbeddedPostgres({ ...refused, dataDir: directory.path }), {
      code: 'DATABASE_NOT_RUNNABLE',
      message: /user 65534 cannot reach .*data: .*user namespaces/,
    });
    assert.equal((await stat(join(directory.path, 'cluster'))).uid, 0);
    await chmod(join(directory.path, '..'), 0o755);
    assert.equal((await stat(join(directory.path, 'cluster'))).uid, 0);
    await using server = await startEmbeddedPostgres({ ...refused, dataDir: directory.path });
    assert.deepEqual(await query(server.connection, 'select 1 as one'), [{ one: 1 }]);
    assert.equal((await stat(join(directory.path, 'cluster'))).uid, NOBODY_ID);
  });
});

test('an ordinary user runs the server as itself; root can use that database later, still as that user', async () => {
  await using directory = await temporaryDirectory('data');
  await chmod(join(directory.path, '..'), 0o755);
  await mkdir(directory.path);
  await chown(directory.path, NOBODY_ID, NOBODY_ID);
  using child = startChild(directory.path, { uid: NOBODY_ID, gid: NOBODY_ID });
  await query((await child.ready).connection, `create table island as select 'Iona' as name`);
  await child.kill();
  const cluster = join(directory.path, 'cluster');
  await until(
    'no process is left',
    () => listServerProcesses(cluster),
    ({ length }) => length === 0,
  );
  await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
  assert.deepEqual(await query(server.connection, 'select name from island'), [{ name: 'Iona' }]);
  assert.equal((await stat(`/proc/${server.pid}`)).uid, NOBODY_ID);
});

/** A container's root has none of CAP_SYS_NICE, which lets it change what others run. */
const AS_IN_CONTAINER = ['setpriv', '--bounding-set=-sys_nice', '--inh-caps=-sys_nice'];

test("a container's root has the database of another user scheduled as a batch job, too", async () => {
  await using directory = await databaseDirectory('data');
  await chmod(join(directory.path, '..'), 0o755);
  // Whose cluster it is runs it.
  for (const name of ['', ...(await readdir(directory.path, { recursive: true }))])
    await chown(join(directory.path, name), NOBODY_ID, NOBODY_ID);
  using child = startChild(directory.path, {}, AS_IN_CONTAINER);
  const { pid } = await child.ready;
  assert.deepEqual([(await stat(`/proc/${pid}`)).uid, readPolicy(pid)], [NOBODY_ID, SCHED_BATCH]);
});
