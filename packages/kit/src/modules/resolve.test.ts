import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openBundles } from './bundles.ts';

const RESOLVE = new URL('./resolve.ts', import.meta.url).href;
const TOP = realpathSync(mkdtempSync(join(tmpdir(), 'skerry-resolve-')));
after(() => rmSync(TOP, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(TOP, path)), { recursive: true });
    writeFileSync(join(TOP, path), text);
  }
}

const run = (path: string, ...flags: string[]) =>
  spawnSync(process.execPath, [...flags, join(TOP, path)], { encoding: 'utf8' });

/** Every way in which modules name each other. The folder's name has a space, which URLs escape; `plain` is one without. */
const APPLICATION = {
  'package.json': '{ "type": "module" }',
  'main.ts': `
    import { createRequire } from 'node:module';
    import { one } from './parts/one.ts';
    import { two } from './parts/two.js';
    import old from './old/old.js';
    import lib from 'lib';
    import data from './data.json' with { type: 'json' };
    import { inner } from './parts/inner/inner.ts';
    import '#own';
    const failed = async (name) => import(name).then(() => 'found', ({ code, message }) => \`\${code} \${message}\`);
    const names = ['./parts/three.ts', './parts', './parts/one', 'nothing', './parts/../old/../parts/one.ts?again'];
    const said = { one, two, old, lib, data, inner, required: createRequire(import.meta.url)('lib'), url: import.meta.url };
    console.log(JSON.stringify({ ...said, failures: await Promise.all(names.map(failed)) }, undefined, 1));
  `,
  'own.ts': 'export {};',
  'data.json': '{ "a": 1 }',
  'parts/one.ts': "import lib from 'lib'; export const one: string = lib + 1;",
  'parts/two.js': 'export const two = 2;',
  'parts/inner/package.json': '{ "type": "module" }',
  'parts/inner/inner.ts': "import lib from 'lib'; export const inner = lib + 2;",
  'parts/inner/node_modules/lib/package.json': '{ "type": "module", "exports": "./lib.js" }',
  'parts/inner/node_modules/lib/lib.js': "export default 'its own';",
  'old/package.json': '{}',
  'old/old.js': 'module.exports = { is: "CommonJS", main: require("./other").other };',
  'old/other.js': 'exports.other = true;',
  'node_modules/lib/package.json': JSON.stringify({
    exports: { import: './lib.js', require: './lib.cjs' },
    type: 'module',
  }),
  'node_modules/lib/lib.js': "export { default } from './deep/deep.js';",
  'node_modules/lib/lib.cjs': "module.exports = 'required';",
  'node_modules/lib/deep/deep.js': "export default 'imported';",
};

for (const place of ['with a space', 'plain']) {
  test(`finds and fails as Node does: ${place}`, () => {
    write(
      Object.fromEntries(
        Object.entries(APPLICATION).map(([path, text]) => [
          join(place, path),
          path === 'package.json' ? '{ "type": "module", "imports": { "#own": "./own.ts" } }' : text,
        ]),
      ),
    );
    const node = run(`${place}/main.ts`);
    assert.match(node.stdout, /its own.*ERR_MODULE_NOT_FOUND.*ERR_UNSUPPORTED_DIR_IMPORT/s, node.stderr);
    const fast = run(`${place}/main.ts`, '--import', RESOLVE);
    assert.deepEqual([fast.stdout, fast.status], [node.stdout, 0], fast.stderr);
  });
}

test('what was edited, added or replaced since the last run is what runs', () => {
  write({
    'edited/package.json': '{ "type": "module" }',
    'edited/main.ts': "import lib from 'lib'; import { one } from './one.ts'; console.log(one, lib);",
    'edited/one.ts': 'export const one = 1;',
    'edited/node_modules/lib/package.json': '{ "type": "module", "exports": "./lib.js" }',
    'edited/node_modules/lib/lib.js': 'export default 1;',
  });
  assert.equal(run('edited/main.ts', '--import', RESOLVE).stdout, '1 1\n');
  write({
    'edited/one.ts': "export { two as one } from './two.ts';",
    'edited/two.ts': 'export const two = 2;',
    'edited/node_modules/lib/package.json': '{ "type": "module", "exports": "./other.js" }',
    'edited/node_modules/lib/other.js': 'export default 2;',
  });
  assert.equal(run('edited/main.ts', '--import', RESOLVE).stdout, '2 2\n');
});

test('a file that this process wrote is found, and a trace names sources', () => {
  write({
    'late/package.json': '{ "type": "module" }',
    'late/main.ts': `
import { writeFileSync } from 'node:fs';
import './first.ts';
writeFileSync(new URL('./late.ts', import.meta.url), 'interface Never {}\\nexport const fail = (): never => {\\n  throw new Error("late");\\n};');
const { fail } = await import('./late.ts');
fail();`,
    'late/first.ts': 'export {};',
  });
  const { stderr } = run('late/main.ts', '--import', RESOLVE);
  assert.match(stderr, /Error: late\n +at fail \(.*late\/late\.ts:3:9\)\n +at .*late\/main\.ts:6:1/);
});

test('a bundle stands for a package while every file behind it is the one that was bundled', () => {
  write({ 'bundles/lib/lib.js': 'export const a = 1;', 'bundles/lib/part.js': 'export const b = 2;' });
  const modules = pathToFileURL(`${join(TOP, 'bundles')}/`);
  const inputs = ['lib/lib.js', 'lib/part.js'].map((path) => {
    const { size, mtimeMs } = statSync(join(TOP, 'bundles', path));
    return [path, size, mtimeMs];
  });
  write({
    'bundles/.cache/skerry-bundles/list.json': JSON.stringify({
      lib: { entry: 'lib/lib.js', file: 'lib.mjs', inputs },
    }),
  });
  const found = new URL('lib/lib.js', modules).href;
  const find = openBundles(modules);
  assert.equal(find('lib', found), new URL('.cache/skerry-bundles/lib.mjs', modules).href);
  assert.equal(find('other', found), undefined);
  // Another version, for a package that has one of its own.
  assert.equal(find('lib', new URL('other/node_modules/lib/lib.js', modules).href), undefined);
  write({ 'bundles/lib/part.js': 'export const b = 34;' });
  assert.equal(find('lib', found), undefined);
  rmSync(join(TOP, 'bundles/lib/part.js'));
  assert.equal(find('lib', found), undefined);
  assert.equal(openBundles(new URL('nowhere/', modules))('lib', found), undefined);
});
