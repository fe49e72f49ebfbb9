import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { serving } from '@skerry/kit/testing/serving';
import { sha256Hex } from '@skerry/protocol';
import type { CidSource } from './cid-file.ts';
import { openNetworkFile } from './network-file.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Whatever follows the collection of an object has run by then. */
const TURNS = 20;

test('a file is whole, whatever is done between opening and reading it', async () => {
  const bytes = randomBytes(1024 * 1024);
  await using node = await serving((_request, response) => void response.end(bytes));
  const source = { getFile: () => fetch(node.url) } as unknown as CidSource;
  const file = await openNetworkFile(source, sha256Hex(bytes));
  for (let turn = 0; turn < TURNS; turn++) {
    collectGarbage();
    await setImmediate();
  }
  assert.ok(bytes.equals(await buffer(file.bytes)));
});
