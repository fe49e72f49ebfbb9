import assert from 'node:assert/strict';
import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { inDirectory } from '../../testing/directory.ts';
import { Room } from './room.ts';

const MIB = 1024 ** 2;

test('volumes may still take what they have not written, however large they are', () =>
  inDirectory(async (directory) => {
    const room = new Room(directory, 8);
    assert.equal(await room.leftMib(), 8);
    const volume = await room.placeOfProgram('0x1', 'program', 'volume');
    await writeFile(volume, Buffer.alloc(MIB, 'x'));
    await truncate(volume, 64 * MIB);
    const file = room.place('files', 'file.plain');
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, Buffer.alloc(2 * MIB, 'x'));
    assert.equal(await room.leftMib(), 5);
    await writeFile(file, Buffer.alloc(9 * MIB, 'x'));
    assert.equal(await room.leftMib(), 0);
  }));
