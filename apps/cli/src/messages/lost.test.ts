import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { ANY_TIME, verifySubmission } from '@skerry/protocol';
import { skerryHere, succeedHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir } from '../testing/run.ts';

test('whoever hears nothing of a message that was sent is told how to find out whether it arrived', async () => {
  await using home = await createTestDir();
  let taken: string | undefined;
  const core = await replying((_url, response) => {
    void text(response.req).then((body) => {
      taken = verifySubmission(body, ANY_TIME).itemHash;
      response.destroy();
    });
    return response;
  });
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  await succeedHere(environment, 'key', 'new');
  const file = join(home.path, 'hello.py');
  await writeFile(file, 'def main(variables):\n  return 1');
  const create = () => skerryHere(environment, ['program', 'create', file, '--json']);
  try {
    const { out, err, code } = await create();
    assert.deepEqual([out, code], ['', 5], err);
    const { details, hint } = JSON.parse(err);
    assert.deepEqual(details, { item_hash: taken });
    assert.ok(hint.includes(`"skerry message get ${taken}"`), hint);
  } finally {
    await core[Symbol.asyncDispose]();
  }
  // Nobody listens there any more: nothing was sent.
  const { err } = await create();
  assert.match(JSON.parse(err).error, /ECONNREFUSED/);
  assert.doesNotMatch(err, /item_hash|may have arrived/);
});
