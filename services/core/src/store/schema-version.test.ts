import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { MIGRATIONS } from './directory.ts';
import { SCHEMA_VERSION } from './schema-version.ts';

/** The one that brought the number. */
const FIRST = 24;

test('each migration tells who writes its number before all else, and this code knows the last one', async () => {
  const names = (await readdir(MIGRATIONS)).toSorted();
  // Two that came side by side would have one number.
  assert.deepEqual(
    names.map((name) => Number(name.slice(0, 3))),
    Array.from({ length: SCHEMA_VERSION }, (_, at) => at + 1),
  );
  for (const name of names) {
    const version = Number(name.slice(0, 3));
    if (version <= FIRST) continue;
    const text = await readFile(join(MIGRATIONS, name), 'utf8');
    const [statement] = text
      .replaceAll(/^--.*$/gm, '')
      .trim()
      .split(';');
    assert.equal(statement, `update event_counter set schema_version = ${version}`, name);
  }
});
