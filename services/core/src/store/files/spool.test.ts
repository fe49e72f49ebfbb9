import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { openSpool } from './spool.ts';

const MIB = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const SIZE_BYTES = 64 * MIB;

/** V8 alone lets what is outside of its heap grow by more than 30 MiB before it collects; a collection every 12 MiB keeps it at 13 to 18. */
const HELD_MIB_MAX = 26;

/** Takes 0.3 CPU s. */
test('what a large upload let go of is collected young, as it comes', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-spool-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const heldBytes = () => process.memoryUsage().arrayBuffers;
  const before = heldBytes();
  let most = 0;
  const chunks = function* () {
    for (let sent = 0; sent < SIZE_BYTES; sent += CHUNK_BYTES) {
      most = Math.max(most, heldBytes() - before);
      yield Buffer.alloc(CHUNK_BYTES, 1);
    }
  };
  const spool = await openSpool(directory);
  const { sizeBytes } = await spool.receive(Readable.from(chunks()), SIZE_BYTES);
  assert.equal(sizeBytes, SIZE_BYTES);
  assert.ok(most < HELD_MIB_MAX * MIB, `${Math.round(most / MIB)} MiB were held at once`);
});
