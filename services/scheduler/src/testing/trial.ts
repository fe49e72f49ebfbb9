import { createLogger, Since } from '@skerry/kit';
import { Controller } from '../controller.ts';
import { Health } from '../health.ts';
import { Outbox } from '../outbox.ts';
import { type Departure, Departures } from '../planning/departures.ts';
import { instanceAt, size } from '../planning/testing/setup.ts';
import { applyInstance, applyNode, createView, type Instance, type Node, type Placement } from '../view.ts';

export const GRACE_MS = 60_000;
const log = createLogger('test', 'silent');

/** A controller with a clock, nodes that answer as told, and a network that takes every decision. */
export async function createTrial(
  nodes: Node[],
  instances: Instance[],
  silentNodes: readonly Node[] = [],
  isListed: (address: string) => boolean = () => true,
  departuresBefore: Iterable<readonly [string, Departure]> = [],
) {
  const stop = new AbortController();
  const silent = new Set(silentNodes.map(({ nodeId }) => nodeId));
  /** Of the nodes that may run programs, each time that it told them. */
  const toldCounts: number[] = [];
  const said: { instanceId: string; placement: Placement }[] = [];
  /** What the clock says, and how far it was set. */
  let nowMs = 1_000_000;
  let setMs = 0;
  let leads = true;
  const outbox = new Outbox({
    publish: async (instanceId, placement) => void said.push({ instanceId, placement }),
    log,
  });
  const health = new Health({
    probe: async ({ nodeId }, asksPrefix) => {
      const fault = silent.has(nodeId) ? { message: 'no answer', isSilent: true } : null;
      return { key: fault, prefix: asksPrefix ? fault : undefined };
    },
    isAsked: (node) => controller.isAsked(node),
    isListed: () => true,
    asksPrefix: () => true,
    onChange: (nodeId) => controller.onHealth(nodeId),
    now: () => nowMs + setMs,
    uptime: () => nowMs,
    signal: stop.signal,
    againMs: 0,
    log,
  });
  const departures = new Departures({ isListed, graceMs: GRACE_MS, before: departuresBefore, log });
  const controller: Controller = new Controller({
    ...{ health, outbox, departures },
    cpuOvercommit: 4,
    manages: () => true,
    trust: 'measured',
    isListed,
    rules: { graceMs: GRACE_MS, scoreMin: 0, privatePrefixes: true, allowPrivate: false },
    isDrained: () => false,
    leads: () => leads,
    onNodes: (told) => toldCounts.push([...told].length),
    wrongSince: new Since(() => nowMs + setMs),
    now: () => nowMs + setMs,
    uptime: () => nowMs,
    signal: stop.signal,
    log,
  });
  const settle = () =>
    new Promise<void>((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
  const view = createView();
  for (const node of nodes) applyNode(view, node);
  for (const instance of instances) applyInstance(view, instance);
  controller.onView(view);
  while (!controller.hasPlan) await settle();
  return {
    controller,
    health,
    outbox,
    departures,
    said,
    toldCounts,
    settle,
    /** The machine's clock is set forward, or back. */
    setClock(byMs: number) {
      setMs += byMs;
    },
    setLeads(value: boolean) {
      leads = value;
      if (leads) controller.onTurn();
      else controller.onDeposed();
    },
    nodeOf: (instanceId: string) => controller.snapshot().planner.get(instanceId)?.nodeId ?? null,
    /** Some nodes are silent from now on; time passes, and the scheduler looks again. */
    async pass(ms: number, ...silentNodes: Node[]) {
      silent.clear();
      for (const { nodeId } of silentNodes) silent.add(nodeId);
      await health.probeAll(nodes);
      nowMs += ms;
      await health.probeAll(nodes);
      controller.checkpoint();
      await settle();
    },
    [Symbol.dispose]() {
      stop.abort();
      outbox[Symbol.dispose]();
    },
  };
}

export const small = size(1, 512, 4);
export const placedOn = (node: Node, index: number) =>
  instanceAt(index, small, { nodeId: node.nodeId, nodeAddress: node.address, ipv6: '' });
