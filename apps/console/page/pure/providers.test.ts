import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ComputeScore, SchedulerNode } from '../data/answers.ts';
import { mergeNodes } from './nodes.ts';
import { byProvider, networkOf } from './providers.ts';

describe('nodes by provider', () => {
  const room = (cpu: number) => ({ cpu, memory_mib: cpu * 1_024, disk_gib: cpu });
  const node = (id: string, ipv6: string | null, isHealthy = true): SchedulerNode => ({
    ...{ node_id: id, url: null, ipv6, address: '0x', version: '1', features: [], instances: 1 },
    ...{ capacity: room(8), limits: room(8), used: room(2), free: room(6), healthy: isHealthy },
    ...{ reason: null, leaving: null, wrong_since_ms: null, trust: 'full', score: null, weight: 1 },
    announced_at: 0,
  });
  const measuredOnly: ComputeScore = {
    ...{ node_id: 'd', total_score: 1, decentralization: 1, status: 'active', codes: [] },
    measurements: { total_nodes: 4, nodes_with_identical_asn: 1, record_count: 1, total_score: 1 },
  };
  const nodes = mergeNodes({
    scheduled: [
      node('a', '2001:db8:1::/64'),
      node('b', '2001:db8:2::/64', false),
      node('c', '2001:db8:3::/64'),
      node('e', null),
    ],
    compute: [measuredOnly],
    core: [],
  });

  test('by what a monitor measured, else by the addresses that they announce, else by nothing', () => {
    const found = (nodeId: string, asn: number | null, asName: string | null) =>
      [nodeId, { nodeId, asn, asName }] as const;
    const providers = byProvider(
      nodes,
      new Map([found('a', 64_500, null), found('b', 64_500, 'EXAMPLE'), found('c', null, null)]),
    );
    assert.deepEqual(
      providers.map(({ key, asn, name, prefix, nodes: own, room: { total, free } }) => [
        ...[key, asn, name, prefix],
        ...[own.map(({ id }) => id).join(), free.cpu, total.cpu],
      ]),
      [
        // b takes no new machines: its room is nobody's.
        ['AS64500', 64_500, 'EXAMPLE', null, 'a,b', 6, 8],
        ['unknown', null, null, null, 'd,e', 6, 8],
        ['2001:db8::/32', null, null, '2001:db8::/32', 'c', 6, 8],
      ],
    );
    assert.deepEqual(byProvider([], new Map()), []);
  });

  test('the network of an address is its first 32 bits, however it is written', () => {
    const same = ['2001:db8:1:2::/64', '2001:0DB8::', '2001:db8:1:2:3:4:5:6'];
    assert.deepEqual(new Set(same.map(networkOf)), new Set(['2001:db8::/32']));
    assert.equal(networkOf('fd00::/64'), 'fd00::/32');
    assert.equal(networkOf('2001::2:3:4:5:6:7'), '2001::/32');
    const strange = [
      null,
      '',
      '1.2.3.4',
      ':',
      'fd00:1',
      '1::2::3',
      'x::1',
      '1:2:3:4:5:6:7::8',
      ':1::2',
      '1:2:3:4:5:6:7:8:9',
    ];
    for (const one of strange) assert.equal(networkOf(one), null, String(one));
  });
});
