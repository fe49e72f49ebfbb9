import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { VERSION } from '@skerry/kit';
import { ROOT } from '../source.ts';
import { releasePackages } from './npm.ts';
import { createRelease } from './release.ts';
import { installLocked } from './run-npm.ts';
import { exampleOf, startCore } from './testing/parts.ts';

/**
 * The packages with every Node that they promise to work with, installed by that Node's npm from the registry, and as those see
 * them who check packages.
 */

const OUTSIDE = mkdtempSync(join(tmpdir(), 'skerry-nodes-'));
const RELEASE = createRelease(join(OUTSIDE, 'build'));
const TRIAL = join(ROOT, 'build/release-trial');
const LIBRARIES = ['protocol', 'client'];
const TOOLS = join(TRIAL, 'node_modules');
const NPM = join(TOOLS, 'npm/bin/npm-cli.js');
const NODES: Readonly<Record<string, string>> = {
  'v20.19.0': join(TOOLS, `node-20-${process.arch}/bin/node`),
  'v22.23.3': join(TOOLS, `node-22-${process.arch}/bin/node`),
  [process.version]: process.execPath,
};

const fileOf = (name: string) => join(RELEASE.files, `${name}-${VERSION}.tgz`);
const run = (program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = process.env) =>
  execFileSync(program, args, { cwd, env, encoding: 'utf8', maxBuffer: 2 ** 26 }).trim();

before(async () => {
  mkdirSync(TRIAL, { recursive: true });
  for (const name of ['package.json', 'package-lock.json'])
    cpSync(join(ROOT, 'tools/release/trial', name), join(TRIAL, name));
  installLocked(TRIAL);
  await releasePackages(RELEASE);
});
after(() => rmSync(OUTSIDE, { recursive: true, force: true, maxRetries: 10 }));

describe('who checks packages finds no fault', () => {
  for (const name of ['skerry', ...LIBRARIES])
    test(`publint: ${name}`, () => {
      const out = run(
        process.execPath,
        [join(TOOLS, 'publint/src/cli.js'), '--strict', '.'],
        join(RELEASE.staged, name),
      );
      assert.match(out, /All good!/);
    });

  for (const name of LIBRARIES)
    test(`attw: ${name}`, () => {
      // They are modules alone, which CommonJS takes with import().
      const args = [fileOf(`skerry-${name}`), '--profile', 'esm-only', '--no-emoji', '--no-color'];
      run(process.execPath, [join(TOOLS, '@arethetypeswrong/cli/dist/index.js'), ...args], OUTSIDE);
    });
});

for (const [version, node] of Object.entries(NODES)) {
  describe(`with Node ${version} and its npm`, () => {
    const folder = join(OUTSIDE, version);
    const home = join(folder, 'home');
    // How the registry is reached from here is npm's and Node's to know.
    const env = { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}`, SKERRY_HOME: home };
    const install = (...names: string[]) =>
      run(node, [NPM, 'install', '--no-audit', '--no-fund', ...names.map(fileOf)], folder, env);
    const command = join(folder, 'node_modules/skerry/bin/skerry.js');
    const skerry = (...args: string[]) => run(node, [command, ...args], folder, env);

    before(() => {
      mkdirSync(home, { recursive: true });
      writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
      assert.equal(run(node, ['--version'], folder), version);
      install('skerry', ...LIBRARIES.map((name) => `skerry-${name}`));
    });

    test('the command does the first steps, and an application runs', async () => {
      assert.equal(skerry('--version'), VERSION);
      assert.match(skerry('key', 'new'), /^address: +0x[0-9a-f]{40}$/m);
      await using core = await startCore(node, command, env);
      const content = '{"type":"note","content":{"text":"hello"}}';
      const hash = skerry('message', 'post', '--content', content, '--core', core.url);
      assert.match(skerry('message', 'get', hash, '--core', core.url), /hello/);

      const example = exampleOf(join(folder, 'node_modules/@skerry/client/README.md'));
      const source = example.replace('http://127.0.0.1:4024', core.url);
      writeFileSync(join(folder, 'main.js'), stripTypeScriptTypes(source));
      assert.match(run(node, ['main.js'], folder, env), /^0x[0-9a-f]{40} processed$/);
    });

    test('a program in CommonJS finds the libraries', () => {
      const names = LIBRARIES.map((name) => `import('@skerry/${name}')`).join(', ');
      const text = `Promise.all([${names}]).then(([{ AppError }, { CoreClient }]) => console.log(typeof AppError, typeof CoreClient));`;
      writeFileSync(join(folder, 'main.cjs'), text);
      assert.equal(run(node, ['main.cjs'], folder, env), 'function function');
    });
  });
}
