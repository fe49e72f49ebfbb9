import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openBundles } from '../packages/kit/src/modules/bundles.ts';
import { listSources, ROOT } from './source.ts';

const MODULES = pathToFileURL(join(ROOT, 'node_modules/'));

test('what npm ci bundles is what the packages export, under names that sources import', async (t) => {
  const made = mkdtempSync(join(tmpdir(), 'skerry-bundles-'));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  execFileSync(process.execPath, [join(ROOT, 'tools/bundle.js'), made]);
  const list = pathToFileURL(join(made, 'list.json'));
  const bundles = Object.entries(JSON.parse(readFileSync(list, 'utf8')) as Record<string, { entry: string }>);
  assert.ok(bundles.length > 5);
  const find = openBundles(MODULES, list);
  const imported = new Set(listSources().flatMap(({ specifiers }) => specifiers));
  for (const [name, { entry }] of bundles) {
    const original = new URL(entry, MODULES).href;
    const bundle = find(name, original) ?? '';
    assert.ok(bundle.startsWith(pathToFileURL(made).href), name);
    assert.deepEqual(Object.keys(await import(bundle)), Object.keys(await import(original)), name);
    assert.ok(imported.has(name), `${name} is bundled, and nothing imports it`);
  }
});
