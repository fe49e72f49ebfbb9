import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, rmdir, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Reserve } from './reserve.ts';
import { openSharedHolds, type SharedHolds } from './shared-holds.ts';

const MIB = 1024 ** 2;
const DISK = 7;

/** Two processes of a directory, and what they log. */
async function openTwo(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-holds-'));
  t.after(() => rm(directory, { recursive: true }));
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => lines.push(line) });
  const open = () => openSharedHolds(directory, log);
  const keep = (mib: number) => new Map([[DISK, mib * MIB]]);
  return { directory, lines, one: open(), other: open(), keep };
}

test('what could not be told is told again: the others went on with what was told before, for as long as it was renewed', async (t) => {
  const { directory, one, other, keep } = await openTwo(t);
  one.tell(keep(16));
  const [name] = await readdir(directory);
  await mkdir(join(directory, `${name}.new`));
  one.tell(keep(64));
  assert.equal(other.othersOn(DISK), 16 * MIB);
  await rmdir(join(directory, `${name}.new`));
  one.renew();
  assert.equal(other.othersOn(DISK), 64 * MIB);
  one[Symbol.dispose]();
  assert.deepEqual(await readdir(directory), []);
});

test('a file that is cut off, and what others put there, hide nothing and end nothing', async (t) => {
  const { directory, lines, one, other, keep } = await openTwo(t);
  one.tell(keep(64));
  await writeFile(join(directory, '0.json'), '');
  await writeFile(join(directory, '1.json'), 'null');
  await writeFile(join(directory, '2.json'), `{"${DISK}":"much"}`);
  await writeFile(join(directory, '3.json.new'), '{"');
  await mkdir(join(directory, 'lost+found'));
  for (const name of await readdir(directory)) await utimes(join(directory, name), 1, 1);
  one.renew();
  const left = await readdir(directory);
  assert.deepEqual([left.length, left.includes('lost+found')], [2, true]);
  await writeFile(join(directory, '0.json'), '');
  assert.equal(other.othersOn(DISK), 64 * MIB);
  assert.deepEqual(lines, []);
});

test('a directory that takes nothing is logged now and then, not at each look', async (t) => {
  const { directory, lines, one, keep } = await openTwo(t);
  one.tell(keep(16));
  const [name] = await readdir(directory);
  await rm(join(directory, name!));
  await mkdir(join(directory, `${name}.new`));
  for (let looks = 0; looks < 32; looks++) {
    one.renew();
    one.othersOn(DISK);
  }
  assert.ok(lines.length > 0 && lines.length <= 6, `${lines.length} lines`);
});

test('a file that comes in pieces looks at what others keep as it begins, and ten times a second: it read a directory for each piece', async (t) => {
  const { directory, lines, one, other, keep } = await openTwo(t);
  const log = createLogger('core', 'info', { write: (line: string) => lines.push(line) });
  one.tell(keep(16));
  const ages: (number | undefined)[] = [];
  const counted: SharedHolds = {
    tell: (kept) => other.tell(kept),
    othersOn: (device, ageMaxMs) => {
      ages.push(ageMaxMs);
      return other.othersOn(device, ageMaxMs);
    },
    renew: () => other.renew(),
    [Symbol.dispose]: () => other[Symbol.dispose](),
  };
  const measure = async () => ({ freeBytes: 4_096 * MIB, sizeBytes: 8_192 * MIB, device: DISK });
  const reserve = new Reserve({ setMib: 0, log, measure, shared: counted });
  await reserve.watch(directory);
  for (const bytes of [undefined, 512 * MIB]) {
    ages.length = 0;
    using hold = reserve.hold(bytes, directory);
    for (let pieces = 0; pieces < 4_096; pieces++) hold.use(MIB / 16);
    assert.ok(ages.length > 1);
    assert.deepEqual([...new Set(ages.slice(1))], [100], `${bytes}`);
    assert.equal(ages[0] ?? 0, 0);
  }

  assert.equal(other.othersOn(DISK), 16 * MIB);
  one.tell(keep(64));
  assert.equal(other.othersOn(DISK, 3_600_000), 16 * MIB, 'nothing was read');
  assert.equal(other.othersOn(DISK), 64 * MIB);
});
