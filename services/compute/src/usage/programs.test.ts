import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestPrograms } from '../programs/testing/setup.ts';
import { readUsage } from './usage.ts';

const MIB = 1024 ** 2;
const KEPT_MIB = 48;
/** Of its own time, however long that takes on a server that is busy. */
const BURNT_MS = 500;

test('a program is told with the memory and the processor time that its sandboxes really take', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await using room = await TestPrograms.open();
  const sources = { dataDir: room.directory, instances: { list: () => [] }, now: Date.now };
  const read = () => readUsage({ ...sources, programs: room.programs });
  assert.deepEqual((await read()).guests, [], 'spare sandboxes are nobody’s');
  const code = `const kept = [];
function main() {
  kept.push(Buffer.alloc(${KEPT_MIB} * ${MIB}, 1));
  while (process.cpuUsage().user < ${BURNT_MS} * 1000);
  return 'done';
}`;
  const hash = room.add('nodejs', code, { memoryMib: 128, owner: '0x7' });
  const begunMs = Date.now();
  assert.equal((await room.outcomeOf(hash)).text, 'done');
  const { guests } = await read();
  assert.equal(guests.length, 1);
  const [one] = guests;
  assert.deepEqual([one?.kind, one?.item_hash, one?.owner, one?.network], ['program', hash, '0x7', null]);
  assert.ok(one!.cpu.seconds! >= (BURNT_MS / 1_000) * 0.9 && one!.cpu.seconds! < 60, `${one!.cpu.seconds}`);
  const { bytes, granted_bytes: granted } = one!.memory;
  assert.ok(bytes! > KEPT_MIB * MIB && bytes! <= granted && granted > 128 * MIB, `${bytes} of ${granted}`);
  // A spare one was there before.
  assert.ok(Date.parse(one!.since!) <= Date.now() && Date.parse(one!.since!) > begunMs - 60_000);
  assert.ok(room.programs.readTotal().memoryBytes! >= bytes! / 2);
});
