import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { openSpool } from './spool.ts';

const MIB = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const SIZE_BYTES = 64 * MIB;

/** Which kind of collection it was; the types leave it out. */
const kindOf = (entry: PerformanceEntry) => (entry as unknown as { detail: { kind: number } }).detail.kind;

/** Takes 0.3 CPU s. */
test('what a large upload let go of is collected young, as it comes', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-spool-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const kinds: number[] = [];
  const observer = new PerformanceObserver((list) => {
    kinds.push(...list.getEntries().map(kindOf));
  });
  observer.observe({ entryTypes: ['gc'] });
  t.after(() => observer.disconnect());
  const chunks = function* () {
    for (let sent = 0; sent < SIZE_BYTES; sent += CHUNK_BYTES) yield Buffer.alloc(CHUNK_BYTES, 1);
  };
  const spool = await openSpool(directory);
  const { sizeBytes } = await spool.receive(Readable.from(chunks()), SIZE_BYTES);
  assert.equal(sizeBytes, SIZE_BYTES);
  // What V8 tells of a collection comes a turn of the event loop later.
  await until(
    'it was collected young after every 12 MiB',
    () => kinds.filter((kind) => kind === constants.NODE_PERFORMANCE_GC_MINOR).length,
    (young) => young >= 5,
    { limitMs: 10_000 },
  );
});
