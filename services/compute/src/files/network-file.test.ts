import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { serving } from '@skerry/kit/testing/serving';
import { AppError, sha256Hex } from '@skerry/protocol';
import type { CidSource } from './cid-file.ts';
import { openNetworkFile } from './network-file.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Whatever follows the collection of an object has run by then. */
const TURNS = 20;
const MIB = 1024 ** 2;
const LIMIT = { bytes: 8 * MIB, what: 'a file' };

test('a file is whole, whatever is done between opening and reading it', async () => {
  const bytes = randomBytes(1024 * 1024);
  await using node = await serving((_request, response) => void response.end(bytes));
  const source = { getFile: () => fetch(node.url) } as unknown as CidSource;
  const file = await openNetworkFile(source, sha256Hex(bytes), LIMIT);
  for (let turn = 0; turn < TURNS; turn++) {
    collectGarbage();
    await setImmediate();
  }
  assert.ok(bytes.equals(await buffer(file.bytes)));
});

/**
 * A core node whose answers break off.
 * @param partBytes behind how many bytes
 * @param isWhole it begins anew each time, whatever is asked for
 * @param isEndLost also behind the last byte
 */
function breaking(bytes: Buffer, partBytes: number, isWhole = false, isEndLost = false) {
  const asked: number[] = [];
  const getFile = async (_hash: string, _timeoutMs?: number, firstByte = 0) => {
    asked.push(firstByte);
    if (firstByte >= bytes.length) throw new AppError('RANGE_NOT_SATISFIABLE', 'nothing is there');
    const isPart = firstByte > 0 && !isWhole;
    let at = isPart ? firstByte : 0;
    const end = Math.min(at + partBytes, bytes.length);
    const pull = (controller: ReadableStreamDefaultController) => {
      const next = Math.min(at + MIB / 4, end);
      if (at < next) controller.enqueue(new Uint8Array(bytes.subarray(at, next)));
      else if (end === bytes.length && !isEndLost) controller.close();
      else controller.error(new TypeError('terminated'));
      at = next;
    };
    const body = new ReadableStream({ pull }, { highWaterMark: 0 });
    const range = `bytes ${firstByte}-${bytes.length - 1}/${bytes.length}`;
    return new Response(body, isPart ? { status: 206, headers: { 'content-range': range } } : {});
  };
  return { asked, source: { getFile } as unknown as CidSource };
}

test('a file that breaks off is gone on with where it did, and checked as a whole', async () => {
  const bytes = randomBytes(3.5 * MIB);
  const { asked, source } = breaking(bytes, MIB);
  const file = await openNetworkFile(source, sha256Hex(bytes), LIMIT);
  assert.ok(bytes.equals(await buffer(file.bytes)));
  assert.deepEqual(asked, [0, MIB, 2 * MIB, 3 * MIB]);
  const other = await openNetworkFile(source, sha256Hex('another file'), LIMIT);
  await assert.rejects(buffer(other.bytes), { code: 'FILE_CORRUPT' });
});

test('one that breaks off behind its last byte is whole', async () => {
  const bytes = randomBytes(2 * MIB);
  const { asked, source } = breaking(bytes, MIB, false, true);
  const file = await openNetworkFile(source, sha256Hex(bytes), LIMIT);
  assert.ok(bytes.equals(await buffer(file.bytes)));
  assert.deepEqual(asked, [0, MIB, 2 * MIB]);
});

test('one that breaks off at once, or that the core node does not go on with, is no fault of whoever names it', async () => {
  const bytes = randomBytes(3 * MIB);
  for (const { source, asked } of [breaking(bytes, MIB / 2), breaking(bytes, MIB, true)]) {
    const file = await openNetworkFile(source, sha256Hex(bytes), LIMIT);
    await assert.rejects(buffer(file.bytes), { code: 'UPSTREAM_UNAVAILABLE' });
    assert.ok(asked.length <= 2);
  }
});

test('of a file that says that it is too large nothing is fetched', async () => {
  let pulled = 0;
  let isEnded = false;
  const pull = () => void pulled++;
  const cancel = () => {
    isEnded = true;
  };
  const body = new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
  const getFile = async () => new Response(body, { headers: { 'content-length': `${LIMIT.bytes + 1}` } });
  const source = { getFile } as unknown as CidSource;
  await assert.rejects(openNetworkFile(source, sha256Hex('large'), LIMIT), {
    code: 'FILE_TOO_LARGE',
    message: `a file is limited to ${LIMIT.bytes} bytes on this node`,
  });
  assert.deepEqual([pulled, isEnded], [0, true]);
});
