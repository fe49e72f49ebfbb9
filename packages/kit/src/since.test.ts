import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from './daemon/log.ts';
import { openSince, Since } from './since.ts';

test('a thing is wrong since it was first told so, until it is told well', () => {
  let nowMs = 100;
  const since = new Since(() => nowMs);
  assert.equal(since.note('disk', false), null);
  assert.equal(since.note('disk', true), 100);
  nowMs = 200;
  assert.deepEqual([since.note('disk', true), since.note('clock', true)], [100, 200]);
  assert.equal(since.note('clock', true, 150), 150, 'somebody knows better');
  assert.equal(since.note('clock', true, 180), 150);
  assert.equal(since.note('disk', false), null);
  nowMs = 300;
  assert.deepEqual([since.of('disk'), since.note('disk', true)], [null, 300]);
  since.keepOnly((name) => name === 'disk');
  assert.deepEqual([since.of('disk'), since.of('clock')], [300, null]);
});

test('what was wrong before a restart is so since then, unless it was well for long enough after it', () => {
  let nowMs = 1_000_000;
  const since = new Since(
    () => nowMs,
    new Map([
      ['disk', 5],
      ['clock', 6],
    ]),
  );
  assert.deepEqual([since.note('disk', false), since.note('peers', true)], [null, 1_000_000]);
  // A part that has just begun does not know yet how it is.
  nowMs += 60_000;
  assert.deepEqual([since.note('disk', true), since.note('clock', false)], [5, null]);
  assert.deepEqual(since.list(), { disk: 5, clock: 6, peers: 1_000_000 });
  nowMs += 60_000;
  assert.deepEqual([since.note('disk', true), since.note('clock', true)], [5, nowMs]);
  assert.deepEqual(since.list(), { disk: 5, clock: nowMs, peers: 1_000_000 });
});

test('a file keeps since when things are wrong, and one that is broken costs the times alone', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-since-'));
  const path = join(directory, 'since.json');
  const open = (nowMs: number) => openSince(path, { now: () => nowMs, log: createLogger('test', 'silent') });
  {
    await using kept = await open(7);
    assert.equal(kept.since.note('disk', true), 7);
  }
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), { disk: 7 });
  {
    await using kept = await open(100);
    assert.equal(kept.since.note('disk', true), 7);
    assert.equal(kept.since.note('disk', false), null);
  }
  await writeFile(path, '[{"disk":');
  {
    await using kept = await open(200);
    assert.equal(kept.since.note('disk', true), 200);
  }
  await rm(directory, { recursive: true });
});
