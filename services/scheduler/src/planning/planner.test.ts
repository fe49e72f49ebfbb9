import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { instanceAddress, LIMITS, nodeIdOf, sha256Hex } from '@skerry/protocol';
import fc from 'fast-check';
import type { Instance, Node } from '../view.ts';
import { CapacityTree } from './capacity-tree.ts';
import { Heap } from './heap.ts';
import { Holdings } from './holdings.ts';
import { addLoad, addressOn, createLoad, fits, type NodeLoad, weightOf } from './load.ts';
import type { PlannerOptions } from './planner.ts';
import { Planner } from './planner.ts';
import type { NodeFacts } from './standing.ts';
import {
  type AnyNetwork,
  addressOf,
  anyInstance,
  anyNetwork,
  anyNode,
  NO_FACTS,
  NODES_MAX,
  nodeAt,
  planOf,
  shuffled,
  size,
  sortedEntries,
  standingOf,
} from './testing/setup.ts';

const OPTIONS: PlannerOptions = { cpuOvercommit: 4, manages: () => true };
const standingIn =
  ({ facts }: Pick<AnyNetwork, 'facts'>) =>
  (node: Node) =>
    standingOf(node, facts.get(node.nodeId));
const planIn = (network: AnyNetwork) =>
  planOf(network.nodes, network.instances, { standingOf: standingIn(network) });
const loadsOf = (loads: ReadonlyMap<string, NodeLoad>) =>
  sortedEntries(loads).map(([id, { used, instances }]) => [id, used, [...instances].sort()]);

describe('every plan', () => {
  test('is the same whatever the order of nodes and instances', () => {
    fc.assert(
      fc.property(anyNetwork, fc.infiniteStream(fc.nat()), (network, keys) => {
        const mixed = {
          ...network,
          nodes: shuffled(network.nodes, keys),
          instances: shuffled(network.instances, keys),
        };
        const [first, second] = [planIn(network), planIn(mixed)];
        assert.deepEqual(sortedEntries(second.placements), sortedEntries(first.placements));
      }),
    );
  });

  test('gives every instance a node and an address, or a reason that fits a message', () => {
    fc.assert(
      fc.property(anyNetwork, (network) => {
        const { placements } = planIn(network);
        assert.equal(placements.size, network.instances.length);
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

  test('promises no more than there is, puts nothing new where it may not be, and leaves nothing waiting that fits', () => {
    fc.assert(
      fc.property(anyNetwork, (network) => {
        const { placements, loads } = planIn(network);
        for (const { instanceId, nodeId: before, needs } of network.instances) {
          const { nodeId } = placements.get(instanceId)!;
          if (nodeId === null) {
            assert.ok(
              ![...loads.values()].some((load) => load.standing.unusable === null && fits(load, needs)),
            );
          } else if (nodeId !== before) {
            const { standing, used, limits } = loads.get(nodeId)!;
            assert.equal(standing.unusable, null);
            assert.ok(used.cpu <= limits.cpu && used.memoryMib <= limits.memoryMib);
            assert.ok(used.diskGib <= limits.diskGib);
          }
        }
      }),
    );
  });

  test('moves only what is on a node that leaves or is gone, and of that all that fits elsewhere', () => {
    fc.assert(
      fc.property(anyNetwork, (network) => {
        const { placements, loads } = planIn(network);
        for (const { instanceId, nodeId: before, needs } of network.instances) {
          if (before === null || !loads.has(before)) continue;
          const { nodeId } = placements.get(instanceId)!;
          const mustLeave = loads.get(before)!.standing.leaving !== null;
          if (nodeId !== before) assert.ok(mustLeave);
          else if (mustLeave)
            assert.ok(
              ![...loads.values()].some((load) => load.standing.unusable === null && fits(load, needs)),
            );
        }
      }),
    );
  });
});

/** A planner that is told of changes one after another, beside the network as it then is. */
class World {
  readonly planner = new Planner(OPTIONS);
  readonly nodes = new Map<string, { node: Node; facts: NodeFacts }>();
  readonly instances = new Map<string, Instance>();

  setNode(node: Node, facts: NodeFacts): void {
    this.nodes.set(node.nodeId, { node, facts });
    this.planner.setNode(node, standingOf(node, facts));
  }

  removeNode(nodeId: string): void {
    this.nodes.delete(nodeId);
    this.planner.removeNode(nodeId);
  }

  setInstance(instance: Instance): void {
    this.instances.set(instance.instanceId, instance);
    this.planner.setInstance(instance);
  }

  removeInstance(instanceId: string): void {
    this.instances.delete(instanceId);
    this.planner.removeInstance(instanceId);
  }

  /** Plans, and tells the network, which now and then tells it back. */
  run(tellsBack: boolean): void {
    for (const { instanceId, placement } of this.planner.run()) {
      const told = { ...this.instances.get(instanceId)!, ...placement };
      this.instances.set(instanceId, told);
      if (tellsBack) this.planner.setInstance(told);
    }
  }

  /** What a planner comes to that begins with this network now. */
  planAnew() {
    const facts = new Map([...this.nodes].map(([id, one]) => [id, one.facts]));
    const planner = new Planner(OPTIONS);
    for (const { node } of this.nodes.values()) planner.setNode(node, standingIn({ facts })(node));
    for (const instance of this.instances.values()) planner.setInstance(instance);
    return { decisions: planner.run(), planner };
  }
}

type Step = (world: World) => void;
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .nat(NODES_MAX - 1)
      .chain(anyNode)
      .map(
        ({ node, facts }): Step =>
          (world) =>
            world.setNode(node, facts),
      ),
  },
  {
    weight: 1,
    arbitrary: fc.nat(NODES_MAX - 1).map(
      (index): Step =>
        (world) =>
          world.removeNode(nodeIdOf(addressOf(index))),
    ),
  },
  {
    weight: 4,
    arbitrary: fc
      .nat(30)
      .chain(anyInstance)
      .map(
        (instance): Step =>
          (world) =>
            world.setInstance(instance),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.nat(30).map(
      (index): Step =>
        (world) =>
          world.removeInstance(sha256Hex(`instance ${index}`)),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.boolean().map(
      (tellsBack): Step =>
        (world) =>
          world.run(tellsBack),
    ),
  },
);

test('change by change comes to what planning from the beginning comes to', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), (steps) => {
      const world = new World();
      for (const one of steps) one(world);
      world.run(false);
      const { decisions, planner } = world.planAnew();
      assert.deepEqual(decisions, []);
      assert.deepEqual(loadsOf(world.planner.loads), loadsOf(planner.loads));
      const placed = ({ planner: one, instances }: Pick<World, 'planner' | 'instances'>) =>
        [...instances.keys()].sort().map((id) => [id, one.get(id)?.nodeId, one.get(id)?.ipv6]);
      assert.deepEqual(placed(world), placed({ planner, instances: world.instances }));
      assert.equal(world.planner.size, world.instances.size);
    }),
    { numRuns: 400 },
  );
});

const resourceNeed = fc.integer({ min: 1, max: 4 });

test('the tree finds what a look at every node finds', () => {
  const someNode = fc.record({
    capacity: fc.record({ cpu: fc.nat(4), memoryMib: fc.nat(4), diskGib: fc.nat(4) }),
    score: fc.constantFrom(null, 0, 0.5, 1),
    used: fc.record({ cpu: fc.nat(4), memoryMib: fc.nat(4), diskGib: fc.nat(4) }),
    isUsable: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(someNode, { maxLength: 20 }),
      resourceNeed,
      resourceNeed,
      resourceNeed,
      (list, cpu, memoryMib, diskGib) => {
        const needs = { cpu, memoryMib, diskGib };
        const loads = list.map(({ capacity, score, isUsable }, index) => {
          const node = nodeAt(
            index,
            capacity,
            isUsable ? {} : { reason: { code: 'HOST_NOT_READY', message: '' } },
          );
          return createLoad(node, standingOf(node, { ...NO_FACTS, score }), 1);
        });
        const tree = new CapacityTree();
        tree.rebuild(loads);
        for (const [index, load] of loads.entries()) {
          addLoad(load, list[index]!.used, sha256Hex(`${index}`));
          tree.update(load);
        }
        const best = loads
          .filter((load) => load.standing.unusable === null && fits(load, needs))
          .sort((a, b) => weightOf(b) - weightOf(a) || (a.node.nodeId < b.node.nodeId ? -1 : 1));
        assert.equal(tree.find(needs), best[0]);
        assert.equal(
          tree.find(needs, (load) => load === best[0]),
          best[1],
        );
        assert.equal(tree.usable, loads.filter((load) => load.standing.unusable === null).length);
      },
    ),
  );
});

test('addresses are those of the protocol, however many zeros there are', () => {
  const digit = fc.constantFrom(...'000001af');
  const digits = fc
    .array(digit, { minLength: 11, maxLength: 11 })
    .map((list) => list.join('').padEnd(64, 'c'));
  const prefix = fc.array(fc.constantFrom('0', '1', 'fd00', 'abc'), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(prefix, digits, (groups, instanceId) => {
      const ipv6Prefix = `${groups.join(':')}::/64`;
      const expected = instanceAddress(ipv6Prefix, instanceId).guest;
      const node = nodeAt(0, size(1, 1, 1), { ipv6Prefix });
      assert.equal(addressOn(createLoad(node, standingOf(node), 1), instanceId), expected);
    }),
  );
});

test('a heap gives back the least first, however its items came', () => {
  const change = fc.oneof(
    fc.integer({ min: 0, max: 20 }),
    fc.constantFrom('pop', 'keep even') as fc.Arbitrary<string>,
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const heap = new Heap<number>((a, b) => a - b);
      let held: number[] = [];
      for (const one of changes) {
        if (typeof one === 'number') {
          heap.push(one);
          held.push(one);
        } else if (one === 'pop') assert.equal(heap.pop(), held.shift());
        else {
          heap.keepOnly((item) => item % 2 === 0);
          held = held.filter((item) => item % 2 === 0);
        }
        held.sort((a, b) => a - b);
        assert.equal(heap.top, held[0]);
        assert.equal(heap.size, held.length);
        assert.deepEqual(
          [...heap].sort((a, b) => a - b),
          held,
        );
      }
    }),
  );
});

test('a node knows what it holds, and whose address is taken, also where ids begin alike', () => {
  // The first digits differ beyond what the key is made of; the next are in it; the last are in no address.
  const anyId = fc
    .tuple(fc.constantFrom('0', 'a'), fc.constantFrom('1', 'f'), fc.constantFrom('2', 'c'))
    .map(([first, middle, last]) => first.padEnd(10, '7') + middle + last.padEnd(53, '5'));
  fc.assert(
    fc.property(fc.array(fc.tuple(anyId, fc.boolean()), { maxLength: 40 }), (changes) => {
      const holdings = new Holdings();
      const held = new Set<string>();
      for (const [id, isAdded] of changes) {
        if (!isAdded) holdings.delete(id);
        else if (!held.has(id)) holdings.add(id);
        if (isAdded) held.add(id);
        else held.delete(id);
        assert.equal(holdings.has(id), isAdded);
        assert.equal(
          holdings.hasAddressOf(id),
          [...held].some((one) => one.slice(0, 11) === id.slice(0, 11)),
        );
        assert.deepEqual([...holdings].sort(), [...held].sort());
        assert.equal(holdings.size, held.size);
      }
    }),
  );
});
