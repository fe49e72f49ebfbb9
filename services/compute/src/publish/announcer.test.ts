import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AcceleratorChoice } from '../vm/accel.ts';
import type { UndatedNode } from './announcement.ts';
import { Announcer } from './announcer.ts';

const log = createLogger('test', 'silent');

function announced(isDraining: boolean): UndatedNode {
  const told: UndatedNode[] = [];
  const announcer = new Announcer({
    publisher: { tellNode: (content) => told.push(content) },
    ...{ ipv6Prefix: 'fd00:1:2:3::/64', capacity: { cpu: 4, memoryMib: 4_096, diskGib: 40 } },
    ...{
      accelerator: new AcceleratorChoice('tcg', log),
      obstacle: null,
      programFeatures: ['program:nodejs'],
    },
    ...{ announceUrl: 'http://192.0.2.7:4020', isDraining, log },
  });
  announcer.announce();
  return told[0]!;
}

test('what copies take of what is offered is told once, and told again when it is free', () => {
  const told: UndatedNode[] = [];
  const capacity = { cpu: 4, memoryMib: 4_096, diskGib: 40 };
  const announcer = new Announcer({
    publisher: { tellNode: (content) => told.push(content) },
    ...{ ipv6Prefix: 'fd00:1:2:3::/64', capacity, programFeatures: [], log },
    ...{ accelerator: new AcceleratorChoice('tcg', log), obstacle: null },
    ...{ announceUrl: 'http://192.0.2.7:4020', isDraining: false },
  });
  for (const diskGib of [40, 36, 36, 40]) announcer.offer({ ...capacity, diskGib });
  assert.deepEqual(
    told.map((node) => node.capacity.disk_gib),
    [36, 40],
  );
});

test('a node that is drained offers nothing, neither room nor programs, and says why', () => {
  const { reason, capacity, features } = announced(true);
  assert.equal(reason?.code, 'NODE_DRAINING');
  assert.deepEqual([capacity, features], [{ cpu: 0, memory_mib: 0, disk_gib: 0 }, []]);
  assert.equal(announced(false).reason, null);
  assert.ok(announced(false).features.includes('program:nodejs'));
});
