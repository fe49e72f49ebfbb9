import { test } from 'node:test';
import { playScenario } from './testing/play.ts';

/** Building an image, and some ten boots under software emulation on a busy machine. */
const DEADLINE_MS = 45 * 60_000;

test('a compute node runs real virtual machines', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-scenario.ts'),
);

test('snapshots, restore, backup and reinstall of a real machine', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-disks.ts'),
);

for (const image of ['debian:12', 'debian:13', 'ubuntu']) {
  test(`a short life of ${image}`, { timeout: DEADLINE_MS }, () => playScenario('vm-short.ts', image));
}

test('the node is killed at every point of the life of an instance', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-kills.ts'),
);

test('the memory of a node stays what it is over fifty starts', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-memory.ts'),
);

test('the disk of the host is full at every point where something is written', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-disk-full.ts'),
);

test('a QEMU hangs, and records of instances cannot be read', { timeout: DEADLINE_MS }, () =>
  playScenario('vm-faults.ts'),
);

test('the commands of an owner', { timeout: DEADLINE_MS }, () => playScenario('vm-commands.ts'));
