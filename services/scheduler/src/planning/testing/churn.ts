import assert from 'node:assert/strict';
import type { Instance, Node } from '../../view.ts';
import { Planner } from '../planner.ts';
import { instanceAt, nodeAt, size, standingOf, unreachable } from './setup.ts';

const INSTANCES_PER_NODE = 100;
const OPTIONS = { cpuOvercommit: 4, manages: () => true };
const NEEDS = [size(1, 512, 4), size(1, 1_024, 8), size(2, 2_048, 20), size(4, 4_096, 40)];

/** A generator of the Park-Miller kind: the same churn in every run. */
function createRandom(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

/** Room for a hundred instances and none to spare, so that some wait whenever a node is lost. */
const makeNode = (index: number) =>
  nodeAt(index, size(64, 192_000, 1_800), {
    ipv6Prefix: `fd00:${(index >> 12).toString(16)}:${index & 0xfff}:1::/64`,
  });
const makeInstance = (index: number) => instanceAt(index, NEEDS[index % NEEDS.length]!);

/** Nothing is promised twice, and what waits has no room. */
function checkPromises(planner: Planner): void {
  for (const { used, limits, instances } of planner.loads.values()) {
    assert.ok(used.cpu <= limits.cpu && used.memoryMib <= limits.memoryMib && used.diskGib <= limits.diskGib);
    assert.ok(instances.size <= planner.size);
  }
  for (const { instanceId } of planner.listWaiting())
    assert.ok('reason' in planner.simulate(planner.getInstance(instanceId)!.needs));
}

/**
 * A network of `nodeCount` nodes with a hundred instances each, through `changes` changes: instances that come and go,
 * nodes that die, come back, leave and join. What it comes to is what planning from the beginning comes to.
 */
export function surviveChurn(nodeCount: number, changes: number): void {
  const random = createRandom(nodeCount + changes);
  const planner = new Planner(OPTIONS);
  const nodes = new Map<number, { node: Node; isDead: boolean }>();
  const told = new Map<string, Instance>();
  let [nextNode, nextInstance] = [0, 0];
  const setNode = (index: number, isDead: boolean) => {
    const node = makeNode(index);
    nodes.set(index, { node, isDead });
    planner.setNode(node, standingOf(node, isDead ? unreachable('no answer', 90_000) : {}));
  };
  const addInstance = () => {
    const instance = makeInstance(nextInstance++);
    told.set(instance.instanceId, instance);
    planner.setInstance(instance);
  };
  const runAndTell = () => {
    for (const { instanceId, placement } of planner.run()) {
      const instance = { ...told.get(instanceId)!, ...placement };
      told.set(instanceId, instance);
      planner.setInstance(instance);
    }
  };
  const removeInstance = () => {
    const id = makeInstance(random(nextInstance)).instanceId;
    told.delete(id);
    planner.removeInstance(id);
  };
  while (nextNode < nodeCount) setNode(nextNode++, false);
  while (nextInstance < nodeCount * INSTANCES_PER_NODE) addInstance();
  runAndTell();
  for (let change = 0; change < changes; change++) {
    const index = [...nodes.keys()][random(nodes.size)]!;
    const { node, isDead } = nodes.get(index)!;
    const kind = random(10);
    if (kind < 4) addInstance();
    else if (kind < 7) removeInstance();
    else if (kind < 8) setNode(index, !isDead);
    else if (kind < 9) setNode(nextNode++, false);
    else {
      nodes.delete(index);
      planner.removeNode(node.nodeId);
    }
    runAndTell();
  }
  checkPromises(planner);
  const anew = new Planner(OPTIONS);
  for (const instance of told.values()) anew.setInstance(instance);
  for (const { node, isDead } of nodes.values())
    anew.setNode(node, standingOf(node, isDead ? unreachable('no answer', 90_000) : {}));
  assert.deepEqual(anew.run(), []);
  for (const id of told.keys()) assert.equal(anew.get(id)!.nodeId, planner.get(id)!.nodeId);
}
