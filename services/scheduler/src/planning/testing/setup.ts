import { nodeIdOf, sha256Hex } from '@skerry/protocol';
import fc from 'fast-check';
import type { Instance, Node, Resources } from '../../view.ts';
import { decideStanding, type NodeFacts, type StandingRules } from '../standing.ts';
import type { Trust } from '../trust.ts';
import { type Plan, type PlanInput, plan } from './plan.ts';

/** Networks for the tests of planning. */

export const addressOf = (index: number) => `0x${(index + 1).toString(16).padStart(40, '0')}`;
export const size = (cpu: number, memoryMib: number, diskGib: number): Resources => ({
  cpu,
  memoryMib,
  diskGib,
});

export function nodeAt(index: number, capacity: Resources, more: Partial<Node> = {}): Node {
  const address = addressOf(index);
  return {
    nodeId: nodeIdOf(address),
    address,
    url: `http://node${index}.test`,
    ipv6Prefix: `fd00:${(index + 1).toString(16)}::/64`,
    capacity,
    features: [],
    version: '0.1.0',
    reason: null,
    announcedAtMs: 1,
    itemHash: sha256Hex(`announcement ${index}`),
    ...more,
  };
}

export function instanceAt(index: number, needs: Resources, more: Partial<Instance> = {}): Instance {
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

export const onNode = ({ nodeId, address }: Node) => ({ nodeId, nodeAddress: address, ipv6: 'fd00::1' });

const LISTED: Trust = { against: null, room: null, words: 'listed' };
export const NO_FACTS: NodeFacts = {
  outage: undefined,
  proof: { isKeyProved: true, prefixFault: null },
  trust: LISTED,
  isListed: true,
  isDrained: false,
  isHeldBack: false,
  score: null,
};
export const RULES: StandingRules = {
  graceMs: 60_000,
  scoreMin: 0,
  privatePrefixes: true,
  allowPrivate: false,
  mayDeclareDead: true,
};
export const standingOf = (node: Node, facts: Partial<NodeFacts> = {}, rules = RULES) =>
  decideStanding(node, { ...NO_FACTS, ...facts }, rules);

export const planOf = (nodes: Node[], instances: Instance[], more: Partial<PlanInput> = {}): Plan =>
  plan({ nodes, instances, cpuOvercommit: 4, manages: () => true, standingOf, ...more });

export const unreachable = (failure: string, forMs = 0): Partial<NodeFacts> => ({
  outage: { lastedMs: forMs, failure, isSilent: true },
});

const resources = (min: number, max: number): fc.Arbitrary<Resources> =>
  fc.record({
    cpu: fc.integer({ min, max }),
    memoryMib: fc.integer({ min, max }).map((units) => units * 512),
    diskGib: fc.integer({ min, max }),
  });

export const NODES_MAX = 6;

/** A node in one of its conditions: usable, unable, without a prefix, out of reach, dead, drained, with or without a score. */
export const anyNode = (index: number): fc.Arbitrary<{ node: Node; facts: NodeFacts }> =>
  fc
    .record({
      capacity: resources(0, 16),
      condition: fc.integer({ min: 0, max: 11 }),
      score: fc.option(fc.integer({ min: 0, max: 10 }).map((tenths) => tenths / 10)),
      version: fc.nat(3),
    })
    .map(({ capacity, condition, score, version }) => ({
      node: nodeAt(index, capacity, {
        version: String(version),
        ...(condition === 0 ? { reason: { code: 'HOST_NOT_READY', message: 'no KVM' } } : {}),
        ...(condition === 1 ? { reason: { code: 'NODE_DRAINING', message: 'goes away' } } : {}),
        ...(condition === 2 ? { ipv6Prefix: null } : {}),
        ...(condition === 3 ? { ipv6Prefix: `fd00:a${index}::/64` } : {}),
      }),
      facts: {
        ...NO_FACTS,
        outage:
          condition === 4
            ? unreachable('no answer').outage
            : condition === 5
              ? unreachable('no answer', 90_000).outage
              : undefined,
        isDrained: condition === 6,
        score,
      },
    }));

/** An instance on a node of the network, on one that is gone, or on none. */
export const anyInstance = (index: number): fc.Arbitrary<Instance> =>
  fc
    .record({ needs: resources(1, 5), on: fc.option(fc.nat(NODES_MAX)), createdAt: fc.nat(5) })
    .map(({ needs, on, createdAt }) =>
      instanceAt(index, needs, {
        createdAt,
        ...(on === null ? {} : onNode({ nodeId: nodeIdOf(addressOf(on)), address: addressOf(on) } as Node)),
      }),
    );

export interface AnyNetwork {
  readonly nodes: Node[];
  readonly facts: ReadonlyMap<string, NodeFacts>;
  readonly instances: Instance[];
}

const INSTANCES_MAX = 24;

export const anyNetwork: fc.Arbitrary<AnyNetwork> = fc
  .record({
    nodes: fc
      .integer({ min: 0, max: NODES_MAX - 1 })
      .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => anyNode(index)))),
    instances: fc
      .integer({ min: 0, max: INSTANCES_MAX })
      .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => anyInstance(index)))),
  })
  .map(({ nodes, instances }) => ({
    nodes: nodes.map(({ node }) => node),
    facts: new Map(nodes.map(({ node, facts }) => [node.nodeId, facts])),
    instances,
  }));

export const shuffled = <T>(items: readonly T[], keys: Iterator<number>): T[] =>
  items
    .map((item) => ({ item, key: keys.next().value as number }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);

export const sortedEntries = <T>(map: ReadonlyMap<string, T>) =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1));
