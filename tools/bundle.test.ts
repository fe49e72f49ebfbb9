import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { answering } from '../packages/client/src/testing/answering.ts';
import { openBundles } from '../packages/kit/src/modules/bundles.ts';
import { listSources, ROOT } from './source.ts';

const MODULES_PATH = join(ROOT, 'node_modules/');
const MODULES = pathToFileURL(MODULES_PATH);
const MAIN = pathToFileURL(join(ROOT, 'apps/cli/src/main.ts'));

const COMMAND = '@skerry/cli';
/** Their actions run services, or what services are made of. */
const OF_SERVICES = ['backup', 'credit', 'daemons', 'image', 'joining', 'network', 'scheduler'].map(
  (name) => `apps/cli/src/commands/${name}.ts`,
);

/** Loaded from the sources for files of IPFS alone, which it reads as a compute node does. */
const FROM_SOURCES = 'apps/cli/src/files/ipfs-file.ts';

const made = mkdtempSync(join(tmpdir(), 'skerry-bundles-'));
after(() => rmSync(made, { recursive: true, force: true }));
execFileSync(process.execPath, [join(ROOT, 'tools/bundle.js'), made]);
const list = pathToFileURL(join(made, 'list.json'));
const bundles = JSON.parse(readFileSync(list, 'utf8')) as Record<
  string,
  { entry: string; inputs: [path: string][] }
>;

test('what npm ci bundles is what the packages export, under names that sources import', async () => {
  const libraries = Object.entries(bundles).filter(([name]) => name !== COMMAND);
  assert.ok(libraries.length > 5);
  const find = openBundles(MODULES, list);
  const imported = new Set(listSources().flatMap(({ specifiers }) => specifiers));
  for (const [name, { entry }] of libraries) {
    const original = new URL(entry, MODULES).href;
    const bundle = find(name, original) ?? '';
    assert.ok(bundle.startsWith(pathToFileURL(made).href), name);
    assert.deepEqual(Object.keys(await import(bundle)), Object.keys(await import(original)), name);
    assert.ok(imported.has(name), `${name} is bundled, and nothing imports it`);
  }
});

test('the bundled command line has what the commands of clients load, no service, and no example of an API', () => {
  const inputs = new Set(bundles[COMMAND]!.inputs.map(([path]) => relative(ROOT, join(MODULES_PATH, path))));
  const commands = [...inputs].filter(
    (path) => path.startsWith('apps/cli/src/') && !OF_SERVICES.includes(path),
  );
  assert.ok(commands.length > 50);
  for (const path of commands)
    for (const [, name] of readFileSync(join(ROOT, path), 'utf8').matchAll(/import\('(\.[^']+)'\)/g)) {
      const loaded = join(dirname(path), name!);
      const isKnown = inputs.has(loaded) || loaded === FROM_SOURCES;
      assert.ok(isKnown, `${path} loads ${name}, which is not bundled`);
    }
  assert.deepEqual(
    [...inputs].filter((path) => /^(?:services|devnet|packages\/protocol\/src\/api\/examples)\//.test(path)),
    [],
  );
});

test('the bundled command line says what its sources say', () => {
  const home = join(made, 'home');
  const run = (program: string, ...args: string[]) =>
    spawnSync(process.execPath, [program, ...args], {
      encoding: 'utf8',
      env: { ...process.env, SKERRY_HOME: home },
    });
  const bundle = fileURLToPath(openBundles(MODULES, list)(COMMAND, MAIN.href) ?? '');
  for (const args of [['--help'], ['key', 'new'], ['key', 'list', '--json'], ['key', 'show', 'what']]) {
    const { stdout, stderr, status } = run(bundle, ...args);
    assert.equal(status, args.includes('what') ? 2 : 0, stderr);
    if (!args.includes('new')) {
      const source = run(fileURLToPath(MAIN), ...args);
      assert.deepEqual([stdout, stderr, status], [source.stdout, source.stderr, source.status]);
    }
  }
});

test('the bundled command line finds what it loads from the sources', () => {
  const bundle = fileURLToPath(openBundles(MODULES, list)(COMMAND, MAIN.href) ?? '');
  const args = [
    'file',
    'get',
    'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o',
    '--core',
    'http://127.0.0.1:9',
  ];
  const env = { ...process.env, SKERRY_HOME: join(made, 'home') };
  const { stderr } = spawnSync(process.execPath, [bundle, ...args], { encoding: 'utf8', env });
  assert.match(stderr, /^error: http:\/\/127\.0\.0\.1:9 does not answer .*\(UPSTREAM_UNAVAILABLE\)$/m);
});

/** Tells at its end what a process has loaded: modules, and parts of Node. What is beside no package finds its library in its bundle. */
const TELL_LOADED = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  const urls = [];
  registerHooks({
    resolve: (name, context, next) => name === 'typebox/schema'
      ? { url: '${pathToFileURL(join(made, 'typebox-schema.mjs'))}', format: 'module', shortCircuit: true }
      : next(name, context),
    load: (url, context, next) => { urls.push(url); return next(url, context); },
  });
  process.on('exit', () => console.error(JSON.stringify({ urls, parts: process.moduleLoadList })));
`)}`;

test('a command that asks a core node loads neither fetch nor curves, which take longer than all else of it', async () => {
  const pagination = { total: 0, page: 1, per_page: 100, total_pages: 1 };
  await using node = await answering({
    '/api/v0/instances': [{ instances: [], pagination, cursor: '0', next_cursor: null }],
  });
  const bundle = fileURLToPath(openBundles(MODULES, list)(COMMAND, MAIN.href) ?? '');
  const args = [bundle, 'instance', 'list', '--all', '--json', '--core', node.url];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', TELL_LOADED, ...args], {
    env: { PATH: process.env.PATH, SKERRY_HOME: join(made, 'home') },
  });
  assert.deepEqual([JSON.parse(stdout), node.asked.length], [[], 1]);
  const { urls, parts } = JSON.parse(stderr) as { urls: string[]; parts: string[] };
  assert.ok(parts.some((part) => part.endsWith(' http')));
  assert.deepEqual(
    parts.filter((part) => /undici|http2/.test(part)),
    [],
  );
  const own = urls.filter((url) => url.startsWith(pathToFileURL(made).href));
  assert.ok(own.length > 5);
  assert.deepEqual(
    own.filter((url) => /^\/\/ .*\/@noble\/curves\//m.test(readFileSync(fileURLToPath(url), 'utf8'))),
    [],
  );
});
