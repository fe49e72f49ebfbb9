import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { onDiskOf } from '../testing/directory.ts';
import { lackOfRoom, promiseRoom } from './room.ts';

const MIB = 1024 ** 2;

test('room that is promised to one is not free for another, as far as nothing was written yet', () =>
  onDiskOf(1_024 + 24, async (directory) => {
    const promise = (name: string, mib: number) => promiseRoom(join(directory, name), mib * MIB, 'a file');
    const both = await Promise.allSettled([promise('one', 16), promise('other', 16)]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    assert.equal(await lackOfRoom(directory, 16 * MIB), 8 * MIB);
    await writeFile(join(directory, 'one'), Buffer.alloc(12 * MIB));
    assert.equal(await lackOfRoom(directory, 8 * MIB), 0, 'what is written is not counted twice');
    await onDiskOf(1_024 + 24, async (elsewhere) => {
      using _there = await promiseRoom(join(elsewhere, 'one'), 16 * MIB, 'a file');
    });
    for (const one of both) if (one.status === 'fulfilled') one.value[Symbol.dispose]();
    using _rest = await promise('other', 12);
  }));
