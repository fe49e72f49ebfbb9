import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { buildConsole } from './build.ts';
import { namedBuild } from './console.ts';
import { describeFile, PAGE_FILE, pagePolicy } from './files.ts';
import { buildOf, checksumsOf } from './hashes.ts';

/** What a browser loads before it shows a page: as gzip has it. */
const FIRST_LOAD_BYTES_MAX = 80 * 1024;

const [build] = await Promise.all([buildConsole(), buildConsole()]);
const page = new TextDecoder().decode(build.files.get(PAGE_FILE));

describe('the files of the console', () => {
  test('the bundler has ended: a node that serves the console would carry its memory for good', () => {
    const own = `PPid:\t${process.pid}\n`;
    const read = (pid: string, what: string) => {
      try {
        return readFileSync(`/proc/${pid}/${what}`, 'utf8');
      } catch {
        return '';
      }
    };
    const children = readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid) && read(pid, 'status').includes(own))
      .map((pid) => read(pid, 'cmdline'))
      .join();
    assert.doesNotMatch(children, /esbuild/);
  });

  test('the first load is small, and the verifier is not in it', () => {
    const sizes = build.first.map(
      (path) => [path, describeFile(path, build.files.get(path)!, []).gzip.length] as const,
    );
    const total = sizes.reduce((sum, [, size]) => sum + size, 0);
    assert.ok(total <= FIRST_LOAD_BYTES_MAX, `${total} bytes: ${JSON.stringify(Object.fromEntries(sizes))}`);
    assert.ok(!build.first.some((path) => path.includes('/verifier-')));
    assert.doesNotMatch(page, /verifier/);
    // Views that are looked at later are loaded later.
    assert.ok([...build.files.keys()].some((path) => path.includes('/later-')));
    assert.ok(!build.first.some((path) => path.includes('/later-')));
  });

  test('the same sources give the same bytes', async () => {
    assert.deepEqual((await buildConsole()).files, build.files);
  });

  test('the build is the hash of the checksums, as sha256sum makes them, and a changed file is another one', () => {
    assert.equal(namedBuild(page), buildOf(build.files));
    const folder = mkdtempSync(join(tmpdir(), 'skerry-console-'));
    try {
      for (const [path, bytes] of build.files) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), bytes);
      }
      const sums = execFileSync('sh', ['-c', 'find console -type f | LC_ALL=C sort | xargs sha256sum'], {
        cwd: folder,
        encoding: 'utf8',
      });
      assert.equal(createHash('sha256').update(sums).digest('hex'), buildOf(build.files));
      execFileSync('sha256sum', ['--check', '--quiet', '--strict'], {
        cwd: folder,
        input: checksumsOf(build.files),
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
    const [path] = [...build.files.keys()].filter((one) => one.endsWith('.css'));
    const changed = new Map([...build.files, [path!, new TextEncoder().encode('/* */')]]);
    assert.notEqual(buildOf(changed), buildOf(build.files));
  });

  test('nothing is inline, and nothing comes from elsewhere', () => {
    assert.doesNotMatch(page, /<script(?![^>]*\bsrc=)|<style| style=| on\w+=/);
    const named = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map((match) => match[1]!);
    assert.ok(named.length >= 3);
    for (const path of named)
      assert.ok(build.files.has(path) || path === 'api/v0/docs', `${path} is no file of the console`);
  });

  test('the worker that holds private keys reaches no network', () => {
    const path = [...build.files.keys()].find((one) => one.includes('/signing-'))!;
    assert.match(
      describeFile(path, new Uint8Array(), ['http://10.0.0.1:4030']).policy,
      /connect-src 'none';/,
    );
    assert.ok(!build.first.includes(path));
  });

  test('the page may run its own scripts alone', () => {
    const policy = pagePolicy(['http://10.0.0.1:4030']);
    assert.match(policy, /script-src 'self';/);
    assert.match(policy, /connect-src 'self' https: .*http:\/\/10\.0\.0\.1:4030;/);
    assert.doesNotMatch(policy, /unsafe/);
    const verifier = [...build.files.keys()].find((path) => path.includes('/verifier-'))!;
    assert.match(
      describeFile(verifier, new Uint8Array(), []).policy,
      /script-src 'self' 'wasm-unsafe-eval';/,
    );
  });
});
