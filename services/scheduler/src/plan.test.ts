import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LIMITS, nodeIdOf, sha256Hex } from '@skerry/protocol';
import fc from 'fast-check';
import { listChanges } from './changes.ts';
import { chooseNode, fits } from './choose.ts';
import { type Plan, type PlanInput, plan } from './plan.ts';
import type { Instance, Node, Resources } from './view.ts';

const addressOf = (index: number) => `0x${(index + 1).toString(16).padStart(40, '0')}`;

function nodeAt(index: number, capacity: Resources, more: Partial<Node> = {}): Node {
  const address = addressOf(index);
  return {
    nodeId: nodeIdOf(address),
    address,
    url: `http://node${index}.test`,
    ipv6Prefix: `fd00:${index + 1}::/64`,
    capacity,
    features: [],
    version: '0.1.0',
    reason: null,
    announcedAtMs: 1,
    itemHash: sha256Hex(`announcement ${index}`),
    ...more,
  };
}

function instanceAt(index: number, needs: Resources, more: Partial<Instance> = {}): Instance {
  return {
    instanceId: sha256Hex(`instance ${index}`),
    needs,
    createdAt: index,
    nodeId: null,
    nodeAddress: null,
    ipv6: '',
    reason: null,
    ...more,
  };
}

function inputOf(nodes: Node[], instances: Instance[], more: Partial<PlanInput> = {}): PlanInput {
  return {
    nodes: new Map(nodes.map((node) => [node.nodeId, node])),
    instances: new Map(instances.map((instance) => [instance.instanceId, instance])),
    unreachable: new Map(),
    cpuOvercommit: 4,
    manages: () => true,
    ...more,
  };
}

const size = (cpu: number, memoryMib: number, diskGib: number): Resources => ({ cpu, memoryMib, diskGib });
const only = (result: Plan) => [...result.placements.values()][0]!;

/** The instances as the network tells them once the plan was told to it. */
function carryOut(instances: ReadonlyMap<string, Instance>, result: Plan): Map<string, Instance> {
  return new Map(
    [...instances].map(([id, instance]) => [id, { ...instance, ...result.placements.get(id)! }]),
  );
}

const resources = (min: number, max: number): fc.Arbitrary<Resources> =>
  fc.record({
    cpu: fc.integer({ min, max }),
    memoryMib: fc.integer({ min, max }).map((units) => units * 512),
    diskGib: fc.integer({ min, max }),
  });

const NODES_MAX = 6;
const network: fc.Arbitrary<{ nodes: Node[]; instances: Instance[]; unreachable: Map<string, string> }> = fc
  .record({
    nodes: fc.array(
      fc.record({ capacity: resources(0, 16), unable: fc.nat(9), unreachable: fc.nat(4), prefix: fc.nat(9) }),
      { maxLength: NODES_MAX },
    ),
    instances: fc.array(
      fc.record({ needs: resources(1, 5), on: fc.option(fc.nat(NODES_MAX)), createdAt: fc.nat(5) }),
      { maxLength: 24 },
    ),
  })
  .map(({ nodes, instances }) => {
    const list = nodes.map(({ capacity, unable, prefix }, index) =>
      nodeAt(index, capacity, {
        ...(unable === 0 ? { reason: { code: 'HOST_NOT_READY', message: 'no KVM' } } : {}),
        ...(prefix === 0 ? { ipv6Prefix: null } : {}),
      }),
    );
    return {
      nodes: list,
      // A node index beyond the list is a node that is gone.
      instances: instances.map(({ needs, on, createdAt }, index) =>
        instanceAt(index, needs, {
          createdAt,
          ...(on === null
            ? {}
            : { nodeId: nodeIdOf(addressOf(on)), nodeAddress: addressOf(on), ipv6: 'fd00::1' }),
        }),
      ),
      unreachable: new Map(
        list.filter((_, index) => nodes[index]!.unreachable === 0).map((node) => [node.nodeId, 'no answer']),
      ),
    };
  });

describe('every plan', () => {
  test('is the same whatever the order of nodes and instances', () => {
    fc.assert(
      fc.property(network, fc.infiniteStream(fc.nat()), ({ nodes, instances, unreachable }, keys) => {
        const shuffle = <T>(items: T[]) =>
          items
            .map((item) => ({ item, key: keys.next().value as number }))
            .sort((a, b) => a.key - b.key)
            .map(({ item }) => item);
        const placements = (result: Plan) => [...result.placements].sort(([a], [b]) => (a < b ? -1 : 1));
        const first = plan(inputOf(nodes, instances, { unreachable }));
        const second = plan(inputOf(shuffle(nodes), shuffle(instances), { unreachable }));
        assert.deepEqual(placements(second), placements(first));
      }),
    );
  });

  test('gives every instance a node and an address, or a reason that fits a message', () => {
    fc.assert(
      fc.property(network, ({ nodes, instances, unreachable }) => {
        const { placements } = plan(inputOf(nodes, instances, { unreachable }));
        assert.equal(placements.size, instances.length);
        for (const { nodeId, nodeAddress, ipv6, reason } of placements.values()) {
          if (nodeId !== null) {
            assert.equal(nodeId, nodeIdOf(nodeAddress!));
            assert.notEqual(ipv6, '');
          } else {
            assert.ok(nodeAddress === null && ipv6 === '' && reason !== null);
            assert.match(reason.code, /^(NO_CAPACITY|NO_NODES)$/);
            assert.ok(reason.message.length > 0 && reason.message.length <= LIMITS.reasonChars);
          }
        }
      }),
    );
  });

  test('puts nothing new on a node that is full, unable or out of reach, and leaves nothing waiting that fits', () => {
    fc.assert(
      fc.property(network, ({ nodes, instances, unreachable }) => {
        const { placements, loads } = plan(inputOf(nodes, instances, { unreachable }));
        for (const { instanceId, nodeId: before, needs } of instances) {
          const { nodeId } = placements.get(instanceId)!;
          if (nodeId === null) {
            assert.ok(![...loads.values()].some((load) => load.unusable === null && fits(load, needs)));
          } else if (nodeId !== before) {
            const { unusable, used, limits } = loads.get(nodeId)!;
            assert.equal(unusable, null);
            assert.ok(used.cpu <= limits.cpu && used.memoryMib <= limits.memoryMib);
            assert.ok(used.diskGib <= limits.diskGib);
          }
        }
      }),
    );
  });

  test('moves nothing whose node is in the network, and changes nothing once it is carried out', () => {
    fc.assert(
      fc.property(network, ({ nodes, instances, unreachable }) => {
        const input = inputOf(nodes, instances, { unreachable });
        const first = plan(input);
        for (const { instanceId, nodeId } of instances)
          if (nodeId !== null && input.nodes.has(nodeId))
            assert.equal(first.placements.get(instanceId)!.nodeId, nodeId);
        const after = carryOut(input.instances, first);
        const second = plan({ ...input, instances: after });
        assert.deepEqual(listChanges(after, second.placements), { decisions: [], wordings: [] });
        assert.deepEqual(
          [...second.loads].map(([id, { used }]) => [id, used]),
          [...first.loads].map(([id, { used }]) => [id, used]),
        );
      }),
    );
  });
});

describe('a new instance goes', () => {
  test('to the node with the largest free part of its memory', () => {
    const busy = instanceAt(0, size(1, 2048, 1), {
      nodeId: nodeIdOf(addressOf(0)),
      nodeAddress: addressOf(0),
    });
    const nodes = [nodeAt(0, size(64, 8192, 99)), nodeAt(1, size(1, 1024, 99))];
    const { placements } = plan(inputOf(nodes, [busy, instanceAt(1, size(1, 512, 1))]));
    assert.equal(placements.get(sha256Hex('instance 1'))!.nodeAddress, addressOf(1));
  });

  test('then to the one with more free cores, then to the smaller id', () => {
    const nodes = [nodeAt(0, size(2, 1024, 9)), nodeAt(1, size(8, 2048, 9)), nodeAt(2, size(8, 4096, 9))];
    const smaller = [nodes[1]!.nodeId, nodes[2]!.nodeId].sort()[0];
    assert.equal(only(plan(inputOf(nodes, [instanceAt(0, size(1, 512, 1))]))).nodeId, smaller);
  });

  test('to the address that follows from the node and its own id', () => {
    const instanceId = '5330dcefe1857bcd97b7b7f24d1420a7d46232d53f27be280c8a7071d88bd84e';
    const node = nodeAt(0, size(1, 1024, 9), { ipv6Prefix: '2001:db8:1:2::/64' });
    const placed = only(plan(inputOf([node], [instanceAt(0, size(1, 512, 1), { instanceId })])));
    assert.equal(placed.ipv6, '2001:db8:1:2:3:5330:dcef:e181');
  });

  test('to another node where one with the same address runs already', () => {
    const twins = ['0', '1'].map((last, index) =>
      instanceAt(index, size(1, 512, 1), { instanceId: `${'ab'.repeat(31)}a${last}` }),
    );
    const nodes = [nodeAt(0, size(64, 8192, 9)), nodeAt(1, size(1, 512, 9))];
    const apart = plan(inputOf(nodes, twins));
    assert.equal(new Set([...apart.placements.values()].map(({ nodeId }) => nodeId)).size, 2);
    const alone = plan(inputOf(nodes.slice(0, 1), twins)).placements.get(twins[1]!.instanceId)!;
    assert.equal(alone.nodeId, null);
    assert.match(alone.reason!.message, /begins alike/);
  });

  test('where cores are promised several times and memory once', () => {
    const nodes = [nodeAt(0, size(1, 4096, 99))];
    const instances = Array.from({ length: 5 }, (_, index) => instanceAt(index, size(1, 512, 1)));
    const placed = (cpuOvercommit: number) =>
      [...plan(inputOf(nodes, instances, { cpuOvercommit })).placements.values()].filter(
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
    const { placements } = plan(inputOf(nodes, instances));
    const isPlaced = (index: number) => placements.get(sha256Hex(`instance ${index}`))!.nodeId !== null;
    assert.deepEqual([1, 2, 3, 4].map(isPlaced), [true, false, false, true]);
  });
});

describe('what is placed', () => {
  const node = nodeAt(0, size(1, 512, 1));
  const on = { nodeId: node.nodeId, nodeAddress: node.address };

  test('stays on a node that is out of reach, and says so', () => {
    const unreachable = new Map([[node.nodeId, 'the node did not answer in 2000 ms']]);
    const nodes = [node, nodeAt(1, size(64, 65536, 999))];
    const kept = only(plan(inputOf(nodes, [instanceAt(0, size(1, 512, 1), on)], { unreachable })));
    assert.equal(kept.nodeId, node.nodeId);
    assert.deepEqual(kept.reason, {
      code: 'NODE_UNREACHABLE',
      message: 'the node did not answer in 2000 ms',
    });
  });

  test('stays on a node that has become too small, which then gets nothing new', () => {
    const instances = [instanceAt(0, size(9, 4096, 9), on), instanceAt(1, size(1, 128, 1))];
    const { placements } = plan(inputOf([node], instances));
    assert.equal(placements.get(instances[0]!.instanceId)!.nodeId, node.nodeId);
    assert.equal(placements.get(instances[1]!.instanceId)!.reason!.code, 'NO_CAPACITY');
  });

  test('gets a new address where its node announces another network', () => {
    const said = inputOf([node], [instanceAt(0, size(1, 512, 1), { ...on, ipv6: 'fd00:9::3:1:1:1' })]);
    const { decisions } = listChanges(said.instances, plan(said).placements);
    assert.equal(decisions.length, 1);
    assert.match(decisions[0]!.placement.ipv6, /^fd00:1::3:/);
  });

  test('moves when its node is gone from the network', () => {
    const other = nodeAt(1, size(1, 512, 1));
    const moved = only(plan(inputOf([other], [instanceAt(0, size(1, 512, 1), on)])));
    assert.equal(moved.nodeId, other.nodeId);
  });

  test('is left alone on a node that this scheduler does not manage', () => {
    const said = inputOf(
      [nodeAt(1, size(64, 65536, 999))],
      [instanceAt(0, size(1, 512, 1), { ...on, ipv6: 'fd00::1' })],
      { manages: (address) => address !== node.address },
    );
    assert.deepEqual(only(plan(said)), { ...on, ipv6: 'fd00::1', reason: null });
  });
});

describe('why nothing was found', () => {
  const reasonOf = (nodes: Node[], needs: Resources, unreachable = new Map<string, string>()) =>
    only(plan(inputOf(nodes, [instanceAt(0, needs)], { unreachable }))).reason!;

  test('without nodes', () => {
    assert.deepEqual(reasonOf([], size(1, 512, 1)), {
      code: 'NO_NODES',
      message: 'no compute node is known',
    });
    const unable = nodeAt(0, size(9, 9999, 9), { reason: { code: 'HOST_NOT_READY', message: 'no KVM' } });
    const lost = nodeAt(1, size(9, 9999, 9));
    assert.deepEqual(reasonOf([unable, lost], size(1, 512, 1), new Map([[lost.nodeId, 'no answer']])), {
      code: 'NO_NODES',
      message: 'none of 2 compute nodes can take an instance: 1 cannot be reached, 1 cannot run instances',
    });
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
      'needs 1 virtual core, 2048 MiB and 20 GiB on one node, no one of 2 nodes has them all free together',
    );
  });
});

test('other words for the same refusal are told apart from decisions', () => {
  const waiting = (message: string) => ({
    nodeId: null,
    nodeAddress: null,
    ipv6: '',
    reason: { code: 'NO_CAPACITY', message },
  });
  const said = new Map([['a', instanceAt(0, size(1, 1, 1), waiting('has 1'))]]);
  assert.deepEqual(listChanges(said, new Map([['a', waiting('has 1')]])), { decisions: [], wordings: [] });
  assert.equal(listChanges(said, new Map([['a', waiting('has 2')]])).wordings.length, 1);
  const none = { ...waiting(''), reason: { code: 'NO_NODES', message: '' } };
  assert.equal(listChanges(said, new Map([['a', none]])).decisions.length, 1);
  assert.equal(listChanges(new Map(), new Map([['a', none]])).decisions.length, 1);
});

test('choosing without an instance (simulation) asks for room only', () => {
  const { loads } = plan(inputOf([nodeAt(0, size(1, 1024, 9))], []));
  assert.ok(chooseNode(loads.values(), size(4, 1024, 9)));
  assert.equal(chooseNode(loads.values(), size(5, 1024, 9)), undefined);
});
