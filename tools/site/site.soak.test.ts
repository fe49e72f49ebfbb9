import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { writeJson } from '../release/stage.ts';
import { ROOT } from '../source.ts';
import { buildSite } from './build.ts';
import { renderCall } from './client-call.ts';
import { findSources, listContracts } from './contracts.ts';

/** The site as it is built; it takes a quarter of a minute and what VitePress brings. */

const ELSEWHERE = /(?:src|href)="https?:\/\/[^"]*\.(?:js|css|woff2?)"|url\(https?:/;
let dir: string;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'skerry-site-'));
});
after(() => rmSync(dir, { recursive: true, force: true }));

const readAll = (site: string) =>
  new Map(
    globSync('**', { cwd: site })
      .filter((path) => statSync(join(site, path)).isFile())
      .sort()
      .map((path) => [path, readFileSync(join(site, path)).toString('base64')]),
  );

describe('the built site', () => {
  test('is the same twice, has no dead link, and loads nothing from elsewhere', async () => {
    const first = readAll(await buildSite(dir, '/docs/'));
    assert.ok(first.has('index.html') && first.has('guides/gateway.html'));
    const second = readAll(await buildSite(dir, '/docs/'));
    assert.deepEqual(
      [...first].filter(([path, bytes]) => second.get(path) !== bytes).map(([path]) => path),
      [],
    );
    assert.equal(second.size, first.size);
    const loading = [...first].filter(
      ([path, bytes]) =>
        /\.(?:html|css)$/.test(path) && ELSEWHERE.test(Buffer.from(bytes, 'base64').toString()),
    );
    assert.deepEqual(
      loading.map(([path]) => path),
      [],
    );
  });

  test('shows calls that the compiler takes', async () => {
    const folder = join(dir, 'calls');
    mkdirSync(folder);
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const given = `declare const url: string;
declare const content: object;
declare const body: never;
declare const bytes: Uint8Array;
declare const signer: import('@skerry/client').Signer;
`;
    const sources = [...(await findSources())];
    const examples = new Map(
      listContracts().flatMap(({ api, examples }) =>
        Object.entries(examples).map(([id, example]) => [api[id], example] as const),
      ),
    );
    for (const [operation, source] of sources) {
      const example = examples.get(operation);
      const call = renderCall(example ? { ...operation, example } : operation, source);
      const declared = call.includes('const { body }')
        ? given.replace('declare const body: never;\n', '')
        : given;
      const name = `${source.module.replaceAll(/\W+/g, '-')}-${source.id}.ts`;
      writeFileSync(join(folder, name), `${declared}${call}\n`);
    }
    const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')) as {
      compilerOptions: object;
    };
    const loose = { noUnusedLocals: false, preserveSymlinks: false, types: ['node'] };
    writeJson(join(folder, 'package.json'), { type: 'module' });
    writeJson(join(folder, 'tsconfig.json'), {
      compilerOptions: { ...compilerOptions, ...loose },
      include: ['*.ts'],
    });
    assert.ok(sources.length > 170, `${sources.length} operations`);
    execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['--project', folder], { stdio: 'inherit' });
  });
});
