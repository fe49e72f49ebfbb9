import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';
import { streamOf } from './idle.ts';

test('a block of megabytes leaves in small pieces: a reader that takes little in a minute is seen to take something', async () => {
  const blocks = [randomBytes(4 * 1024 * 1024), Buffer.alloc(0), randomBytes(1)];
  let ends = 0;
  const stream = streamOf(
    (async function* () {
      yield* blocks;
    })(),
    () => ends++,
  );
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  await once(stream, 'close');
  assert.ok(Math.max(...pieces.map(({ length }) => length)) <= 64 * 1024);
  assert.ok(Buffer.concat(pieces).equals(Buffer.concat(blocks)));
  assert.equal(ends, 1);
});
