import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { CORE_API } from '@skerry/protocol/api/core/index';
import type { Operation } from '@skerry/protocol/api/operation';

const PAGE = join(import.meta.dirname, '..');
/** The fixed beginning of what is asked again and again. */
const POLLED = /\buseCore\(\s*["'`](\/[^"'`?$]*)/g;

test('what a core node counts as heavy is asked seldom: ten a minute are for all at one address', async () => {
  const heavy = Object.values<Operation>(CORE_API).flatMap(({ rateClass, path }) =>
    rateClass === 'heavy' ? [path] : [],
  );
  const polled: string[] = [];
  for (const name of await readdir(PAGE, { recursive: true })) {
    if (!/(?<!\.test)\.tsx?$/.test(name)) continue;
    const text = await readFile(join(PAGE, name), 'utf8');
    polled.push(...[...text.matchAll(POLLED)].map(([, path]) => path!));
  }
  assert.ok(polled.includes('/api/v0/credits/prices'));
  assert.deepEqual(
    polled.filter((path) => heavy.includes(path)),
    [],
  );
});
