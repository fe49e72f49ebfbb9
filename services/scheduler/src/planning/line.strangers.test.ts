import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InstanceView, sha256Hex } from '@skerry/protocol';
import { parseInstance } from '../view.ts';
import { nodeAt, planOf, size } from './testing/setup.ts';

const T = 1_700_000_000;

const told = (name: string, more: Partial<InstanceView>) =>
  parseInstance({
    instance_id: sha256Hex(name),
    cpu: 1,
    memory: 1_024,
    disk: 10,
    image: 'debian:12',
    node_id: null,
    node_address: null,
    ipv6: '',
    reason: null,
    created_at: T,
    effective_at: T,
    ...more,
  } as InstanceView);

test('H2: an instance that is dated back takes nobody’s place in the line', () => {
  const waiting = told('first come', {});
  const dated = told('dated 1970', { created_at: 0, effective_at: T + 60 });
  const node = nodeAt(0, size(1, 1_024, 10));
  const { placements } = planOf([node], [dated, waiting], { cpuOvercommit: 1 });
  assert.equal(placements.get(waiting.instanceId)!.nodeId, node.nodeId);
  assert.equal(placements.get(dated.instanceId)!.nodeId, null);
});
