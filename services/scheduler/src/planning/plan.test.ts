import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nodeIdOf, sha256Hex } from '@skerry/protocol';
import type { Instance, Node, Resources } from '../view.ts';
import { listCandidates } from './explain.ts';
import { Planner } from './planner.ts';
import type { NodeFacts } from './standing.ts';
import type { Plan } from './testing/plan.ts';
import {
  addressOf,
  instanceAt,
  nodeAt,
  onNode,
  planOf,
  RULES,
  size,
  standingOf,
  unreachable,
} from './testing/setup.ts';

const only = (result: Plan) => [...result.placements.values()][0]!;
const withFacts = (facts: Readonly<Record<string, Partial<NodeFacts>>>, rules = RULES) => ({
  standingOf: (node: Node) => standingOf(node, facts[node.nodeId], rules),
});

describe('a new instance goes', () => {
  test('to the node that has the largest free part of what it has least of', () => {
    const busy = instanceAt(0, size(1, 2048, 1), onNode(nodeAt(0, size(0, 0, 0))));
    const nodes = [nodeAt(0, size(64, 8192, 99)), nodeAt(1, size(1, 1024, 99))];
    const { placements } = planOf(nodes, [busy, instanceAt(1, size(1, 512, 1))]);
    assert.equal(placements.get(sha256Hex('instance 1'))!.nodeAddress, addressOf(1));
    const full = instanceAt(0, size(1, 1, 98), onNode(nodeAt(1, size(0, 0, 0))));
    const other = planOf(nodes, [full, instanceAt(1, size(1, 512, 1))]);
    assert.equal(other.placements.get(sha256Hex('instance 1'))!.nodeAddress, addressOf(0));
  });

  test('to the one with the better score where both are as empty, else to the smaller id', () => {
    const nodes = [nodeAt(0, size(8, 1024, 9)), nodeAt(1, size(8, 2048, 9)), nodeAt(2, size(8, 4096, 9))];
    const instances = [instanceAt(0, size(1, 512, 1))];
    const [smallest] = nodes.map(({ nodeId }) => nodeId).sort();
    assert.equal(only(planOf(nodes, instances)).nodeId, smallest);
    const last = [...nodes].sort((a, b) => (a.nodeId < b.nodeId ? 1 : -1))[0]!.nodeId;
    assert.equal(only(planOf(nodes, instances, withFacts({ [last]: { score: 0.3 } }))).nodeId, last);
  });

  test('to a node of half the free share where that has twice the weight', () => {
    const [good, empty] = [nodeAt(0, size(8, 1000, 100)), nodeAt(1, size(8, 1000, 100))];
    const busy = (memoryMib: number) => instanceAt(0, size(1, memoryMib, 1), onNode(good));
    const chosen = (memoryMib: number) =>
      planOf(
        [good, empty],
        [busy(memoryMib), instanceAt(1, size(1, 10, 1))],
        withFacts({ [good.nodeId]: { score: 1 } }),
      ).placements.get(sha256Hex('instance 1'))!.nodeId;
    assert.deepEqual([chosen(499), chosen(501)], [good.nodeId, empty.nodeId]);
  });

  test('to the address that follows from the node and its own id', () => {
    const instanceId = '5330dcefe1857bcd97b7b7f24d1420a7d46232d53f27be280c8a7071d88bd84e';
    const node = nodeAt(0, size(1, 1024, 9), { ipv6Prefix: '2001:db8:1:2::/64' });
    const placed = only(planOf([node], [instanceAt(0, size(1, 512, 1), { instanceId })]));
    assert.equal(placed.ipv6, '2001:db8:1:2:3:5330:dcef:e181');
  });

  test('to another node where one with the same address runs already', () => {
    const twins = ['0', '1'].map((last, index) =>
      instanceAt(index, size(1, 512, 1), { instanceId: `${'ab'.repeat(31)}a${last}` }),
    );
    const nodes = [nodeAt(0, size(64, 8192, 9)), nodeAt(1, size(1, 512, 9))];
    const apart = planOf(nodes, twins);
    assert.equal(new Set([...apart.placements.values()].map(({ nodeId }) => nodeId)).size, 2);
    const alone = planOf(nodes.slice(0, 1), twins).placements.get(twins[1]!.instanceId)!;
    assert.equal(alone.nodeId, null);
    assert.match(alone.reason!.message, /same first id digits/);
  });

  test('where cores are promised several times and memory once', () => {
    const nodes = [nodeAt(0, size(1, 4096, 99))];
    const instances = Array.from({ length: 5 }, (_, index) => instanceAt(index, size(1, 512, 1)));
    const placed = (cpuOvercommit: number) =>
      [...planOf(nodes, instances, { cpuOvercommit }).placements.values()].filter(
        ({ nodeId }) => nodeId !== null,
      ).length;
    assert.deepEqual([placed(1), placed(4), placed(9)], [1, 4, 5]);
  });

  test('in the order of creation; one that finds no room does not hold up the others', () => {
    const nodes = [nodeAt(0, size(8, 1024, 99))];
    const instances = [
      instanceAt(3, size(1, 512, 1)),
      instanceAt(2, size(1, 4096, 1)),
      instanceAt(1, size(1, 768, 1)),
      instanceAt(4, size(1, 256, 1)),
    ];
    const { placements } = planOf(nodes, instances);
    const isPlaced = (index: number) => placements.get(sha256Hex(`instance ${index}`))!.nodeId !== null;
    assert.deepEqual([1, 2, 3, 4].map(isPlaced), [true, false, false, true]);
  });

  test('to no node whose score is below the least, but to one without a score', () => {
    const nodes = [nodeAt(0, size(8, 1024, 9)), nodeAt(1, size(1, 512, 9))];
    const facts = { [nodes[0]!.nodeId]: { score: 0.19 } };
    const placed = only(
      planOf(nodes, [instanceAt(0, size(1, 512, 1))], withFacts(facts, { ...RULES, scoreMin: 0.2 })),
    );
    assert.equal(placed.nodeId, nodes[1]!.nodeId);
  });

  test('to no private network where only public ones will do', () => {
    const rules = { ...RULES, privatePrefixes: false };
    const nodes = [nodeAt(0, size(8, 1024, 9)), nodeAt(1, size(1, 512, 9), { ipv6Prefix: '2a00:db8::/64' })];
    assert.equal(
      only(planOf(nodes, [instanceAt(0, size(1, 512, 1))], withFacts({}, rules))).nodeId,
      nodes[1]!.nodeId,
    );
  });
});

describe('what is placed', () => {
  const node = nodeAt(0, size(1, 512, 1));
  const other = nodeAt(1, size(64, 65536, 999));
  const on = onNode(node);
  const placed = instanceAt(0, size(1, 512, 1), on);

  test('stays on a node that is out of reach, and says so; after the grace period it goes elsewhere', () => {
    const nodeAfter = (forMs: number, nodes: Node[], rules = RULES) =>
      only(planOf(nodes, [placed], withFacts({ [node.nodeId]: unreachable('no answer', forMs) }, rules)));
    const kept = nodeAfter(RULES.graceMs - 1, [node, other]);
    assert.deepEqual(
      [kept.nodeId, kept.reason],
      [node.nodeId, { code: 'NODE_UNREACHABLE', message: 'no answer' }],
    );
    assert.equal(nodeAfter(RULES.graceMs, [node, other]).nodeId, other.nodeId);
    // Without another that has room it is better off where its disk is.
    assert.equal(nodeAfter(RULES.graceMs, [node]).nodeId, node.nodeId);
    assert.equal(
      nodeAfter(RULES.graceMs, [node, other], { ...RULES, mayDeclareDead: false }).nodeId,
      node.nodeId,
    );
  });

  test('goes elsewhere when its node is drained, by the node or by the operator, as far as there is room', () => {
    const instances = [placed, instanceAt(1, size(1, 512, 1), on)];
    const small = nodeAt(1, size(1, 512, 9));
    const draining = { ...node, reason: { code: 'NODE_DRAINING', message: 'new disks' } };
    for (const result of [
      planOf([draining, small], instances),
      planOf([node, small], instances, withFacts({ [node.nodeId]: { isDrained: true } })),
    ])
      assert.deepEqual(
        instances.map(({ instanceId }) => result.placements.get(instanceId)!.nodeId),
        [small.nodeId, node.nodeId],
      );
    // What else is wrong with the node is not why it is left.
    const failed = { ...node, reason: { code: 'PREFIX_NOT_HELD', message: 'no rights' } };
    const { unusable, leaving } = standingOf(failed, { isDrained: true });
    assert.deepEqual(unusable, failed.reason);
    assert.deepEqual(leaving, {
      code: 'NODE_DRAINING',
      message: "the scheduler's operator is draining the node",
    });
  });

  test('stays on a node that has become too small, which then gets nothing new', () => {
    const instances = [instanceAt(0, size(9, 4096, 9), on), instanceAt(1, size(1, 128, 1))];
    const { placements } = planOf([node], instances);
    assert.equal(placements.get(instances[0]!.instanceId)!.nodeId, node.nodeId);
    assert.equal(placements.get(instances[1]!.instanceId)!.reason!.code, 'NO_CAPACITY');
  });

  test('gets a new address where its node announces another network', () => {
    const planner = new Planner({ cpuOvercommit: 4, manages: () => true });
    planner.setNode(node, standingOf(node));
    planner.setInstance({ ...placed, ipv6: planner.loads.get(node.nodeId)!.node.ipv6Prefix! });
    const [decision] = planner.run();
    assert.match(decision!.placement.ipv6, /^fd00:1::3:/);
    const moved = { ...node, ipv6Prefix: 'fd00:9::/64' };
    planner.setNode(moved, standingOf(moved));
    assert.match(planner.run()[0]!.placement.ipv6, /^fd00:9::3:/);
    planner.setNode(node, standingOf(node));
    assert.equal(planner.run()[0]!.placement.ipv6, decision!.placement.ipv6);
    assert.deepEqual(planner.run(), []);
  });

  test('moves when its node is gone from the network, and waits where no other has room', () => {
    assert.equal(only(planOf([other], [placed])).nodeId, other.nodeId);
    assert.equal(only(planOf([], [placed])).reason!.code, 'NO_NODES');
  });

  test('is left alone on a node that this scheduler does not manage', () => {
    const result = planOf([other], [placed], { manages: (address) => address !== node.address });
    assert.deepEqual(only(result), { ...on, reason: null });
  });
});

describe('why nothing was found', () => {
  const reasonOf = (nodes: Node[], needs: Resources, more = {}) =>
    only(planOf(nodes, [instanceAt(0, needs)], more)).reason!;

  test('without nodes', () => {
    assert.deepEqual(reasonOf([], size(1, 512, 1)), {
      code: 'NO_NODES',
      message: 'no compute node is known',
    });
    const unable = nodeAt(0, size(9, 9999, 9), { reason: { code: 'HOST_NOT_READY', message: 'no KVM' } });
    const lost = nodeAt(1, size(9, 9999, 9));
    assert.deepEqual(
      reasonOf([unable, lost], size(1, 512, 1), withFacts({ [lost.nodeId]: unreachable('no answer') })),
      {
        code: 'NO_NODES',
        message:
          'none of 2 compute nodes can accept an instance: 1 cannot be reached, 1 cannot run instances',
      },
    );
  });

  test('with nodes that are too small: each thing that is missing', () => {
    const nodes = [nodeAt(0, size(1, 1024, 9)), nodeAt(1, size(2, 2048, 9))];
    assert.deepEqual(reasonOf(nodes, size(1, 4096, 1)), {
      code: 'NO_CAPACITY',
      message: 'needs 4096 MiB of memory, the freest of 2 nodes has 2048 MiB free',
    });
    assert.equal(
      reasonOf(nodes.slice(0, 1), size(5, 512, 20)).message,
      'needs 5 virtual cores, the only node has 4 free; needs 20 GiB of disk, the only node has 9 GiB free',
    );
  });

  test('with room only in pieces', () => {
    const nodes = [nodeAt(0, size(1, 4096, 1)), nodeAt(1, size(1, 512, 99))];
    assert.equal(
      reasonOf(nodes, size(1, 2048, 20)).message,
      'needs 1 virtual core, 2048 MiB and 20 GiB on one node; none of 2 nodes has that free',
    );
  });
});

test('other words for the same refusal are told in a batch, another refusal at once', () => {
  const planner = new Planner({ cpuOvercommit: 4, manages: () => true });
  const node = nodeAt(0, size(1, 1024, 9));
  const large: Instance = instanceAt(1, size(1, 4096, 1));
  planner.setNode(node, standingOf(node));
  planner.setInstance(large);
  assert.match(planner.run()[0]!.placement.reason!.message, /has 1024 MiB free/);
  planner.setInstance(instanceAt(0, size(1, 512, 1)));
  assert.deepEqual(
    planner.run().map(({ instanceId }) => instanceId),
    [sha256Hex('instance 0')],
  );
  assert.match(planner.reword(9)[0]!.placement.reason!.message, /has 512 MiB free/);
  assert.deepEqual(planner.reword(9), []);
  planner.setNode(node, standingOf(node, unreachable('no answer')));
  assert.deepEqual(
    planner.run().map(({ placement }) => placement.reason?.code),
    ['NO_NODES'],
  );
  assert.deepEqual(
    planner.listWaiting().map(({ instanceId }) => instanceId),
    [large.instanceId],
  );
  planner.removeInstance(large.instanceId);
  assert.deepEqual(
    [planner.run(), planner.count(size(8, 8192, 9))],
    [[], { waiting: 0, leaving: 0, oversized: 0 }],
  );
});

test('every node is explained: which would be chosen, and what speaks against the others', () => {
  const nodes = [
    nodeAt(0, size(8, 4096, 9)),
    nodeAt(1, size(8, 4096, 9)),
    nodeAt(2, size(8, 256, 9)),
    nodeAt(3, size(8, 4096, 9), { reason: { code: 'HOST_NOT_READY', message: 'no KVM' } }),
  ];
  const { loads } = planOf(nodes, [instanceAt(0, size(1, 1024, 1), onNode(nodes[0]!))]);
  const { list, counts } = listCandidates(loads.values(), size(1, 512, 1), undefined);
  assert.deepEqual(list[0]!.load.node, nodes[1]);
  assert.deepEqual(Object.fromEntries(counts), { FITS: 2, NO_CAPACITY: 1, HOST_NOT_READY: 1 });
  const own = listCandidates(loads.values(), size(1, 9999, 1), instanceAt(0, size(1, 1024, 1)));
  assert.deepEqual([own.list[0]!.load.node.nodeId, own.list[0]!.against], [nodes[0]!.nodeId, null]);
  assert.equal(nodeIdOf(addressOf(0)), nodes[0]!.nodeId);
});
