import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { ANY_TIME, itemHashOf, sha256Hex, verifySubmission } from '@skerry/protocol';
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

test('whose program is lost behind its file is told of the program: the file alone is stored only once', async () => {
  await using home = await createTestDir();
  const code = Buffer.from([0, 0xff, 1, 2]);
  const fileHash = sha256Hex(code);
  let taken: string | undefined;
  await using core = await replying(({ pathname }, response) => {
    void text(response.req).then((body) => {
      if (pathname !== '/api/v0/storage/store') {
        taken = verifySubmission(body, ANY_TIME).itemHash;
        response.destroy();
        return;
      }
      const [address] = body.match(/0x[0-9a-fA-F]{40}/)!;
      const item_hash = itemHashOf('ETH', address, fileHash);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ status: 'success', file_hash: fileHash, item_hash }));
    });
    return response;
  });
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
  await succeedHere(environment, 'key', 'new');
  const file = join(home.path, 'program.wasm');
  await writeFile(file, code);
  const { err } = await skerryHere(environment, ['program', 'create', file, '--json']);
  const { error, details, hint } = JSON.parse(err.trim().split('\n').at(-1)!);
  assert.match(error, /^program\.wasm was stored as [0-9a-f]{64}, but /, err);
  assert.deepEqual(details, { file_hash: fileHash, item_hash: taken });
  assert.ok(hint.includes(`"skerry message get ${taken}"`), hint);
});

test('a node that answers a question does not say that a message of the user may have arrived', async () => {
  await using home = await createTestDir();
  const item_hash = 'a'.repeat(64);
  for (const code of ['UPSTREAM_UNAVAILABLE', 'INTERNAL']) {
    await using core = await replying((_url, response) => {
      response.statusCode = 503;
      return { status: 'error', code, error: 'no', details: { item_hash, retry_after: 1 } };
    });
    const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
    const { err } = await skerryHere(environment, ['message', 'get', 'b'.repeat(64), '--json']);
    assert.doesNotMatch(err, /may have arrived/);
    assert.deepEqual(JSON.parse(err).details, { retry_after: 1 }, err);
  }
});
