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

test('a node that is drained offers nothing, neither room nor programs, and says why', () => {
  const { reason, capacity, features } = announced(true);
  assert.equal(reason?.code, 'NODE_DRAINING');
  assert.deepEqual([capacity, features], [{ cpu: 0, memory_mib: 0, disk_gib: 0 }, []]);
  assert.equal(announced(false).reason, null);
  assert.ok(announced(false).features.includes('program:nodejs'));
});
