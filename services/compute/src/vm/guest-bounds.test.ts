import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { guestLimits } from './guest-bounds.ts';

const MIB = 1024 ** 2;

test('a guest may have its cores and its memory, and what its QEMU takes beside them', () => {
  const small = { cpu: 1, memoryMib: 512 };
  assert.deepEqual(guestLimits(small, 'kvm'), {
    ...{ memoryBytes: (512 + 8 + 256) * MIB, tasks: 129, cpus: 1.5, weight: 1, maySwap: true },
  });
  // Code that is kept translated.
  assert.equal(guestLimits(small, 'tcg').memoryBytes, (512 + 8 + 256 + 128) * MIB);
  const large = guestLimits({ cpu: 64, memoryMib: 65_536 }, 'kvm');
  assert.deepEqual([large.cpus, large.weight, large.memoryBytes], [64.5, 64, (65_536 + 1_024 + 256) * MIB]);
});

/** Opens the bounds of a node in a process that sees no control groups, and shows what it said and what it starts QEMU by. */
const ELSEWHERE = `
  const { openBounds } = await import(${JSON.stringify(new URL('./guest-bounds.ts', import.meta.url).href)});
  const said = [];
  const log = { warn: (_, text) => said.push(text) };
  const config = { dataDir: process.argv[1], guestDiskRateMib: 1, guestDiskOperations: 2 };
  const bounds = openBounds(config, 'ab'.repeat(32), log);
  const { command } = bounds.keep({ machineId: 'a', cpu: 1, memoryMib: 64 }, 'kvm');
  console.log(JSON.stringify({ said, command, share: bounds.share }));`;

test('without control groups it is said what is lost and why, guests come after the node, and their disks have a share', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-bounds-'));
  try {
    const node = [process.execPath, '--input-type=module', '-e', ELSEWHERE, dataDir];
    const script = 'umount -R -l /sys/fs/cgroup; exec "$@"';
    const text = execFileSync('unshare', ['--mount', 'sh', '-c', script, 'sh', ...node], {
      encoding: 'utf8',
    });
    const { said, command, share } = JSON.parse(text);
    assert.deepEqual(command, ['nice', '-n', '5']);
    assert.deepEqual(share, { guestDiskRateMib: 1, guestDiskOperations: 2 });
    assert.equal(said.length, 1);
    assert.match(
      said[0],
      /for want of control groups: the control groups memory, pids and cpu are not all mounted/,
    );
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});
