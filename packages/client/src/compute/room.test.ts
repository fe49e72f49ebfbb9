import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeView } from '@skerry/protocol/api/scheduler';
import { describeLack } from './room.ts';

const size = (cpu: number, memory_mib = 8_192, disk_gib = 100) => ({ cpu, memory_mib, disk_gib });

type Node = Pick<NodeView, 'healthy' | 'leaving' | 'limits' | 'capacity'>;
const nodeWith = (cpu: number, more: Partial<Node> = {}): Node => ({
  ...{ capacity: size(cpu), limits: size(cpu), healthy: true, leaving: null },
  ...more,
});

const WHY = ['needs more virtual cores than the freest of 2 nodes has free'];
const lackOf = (cpu: number, ...nodes: Node[]) => describeLack({ cpu, memory: 512, disk: 4 }, nodes, WHY);

test('what a node takes when it is empty only waits, and what none takes waits for another node', () => {
  const gone = { code: 'NODE_DEAD', message: 'it is gone' };
  assert.equal(lackOf(8, nodeWith(4), nodeWith(8)).isPassing, true);
  assert.equal(lackOf(8, nodeWith(4), nodeWith(8, { leaving: gone })).isPassing, false);
  // Whoever has just come counts for nothing yet, and may count for all that it has.
  const unmeasured = { healthy: false, limits: size(0, 0, 0) };
  assert.equal(lackOf(8, nodeWith(4), nodeWith(8, unmeasured)).isPassing, true);
  // Where there is none, nobody knows how large the first will be.
  assert.equal(lackOf(8).isPassing, true);
  const { isPassing, sentence } = lackOf(64, nodeWith(4), nodeWith(8));
  assert.equal(isPassing, false);
  assert.match(
    sentence,
    /for 64 cores, 512 MiB and 4 GiB, even empty: one node has at most 8 cores, 8192 MiB/,
  );
  // No node has all of it, though each has some.
  const [wide, deep] = [
    nodeWith(64, { limits: size(64, 256, 4) }),
    nodeWith(4, { limits: size(4, 8192, 100) }),
  ];
  assert.match(
    lackOf(8, wide, deep).sentence,
    /: the most of each, 64 cores, 8192 MiB and 100 GiB, is on different nodes/,
  );
});
