import { buffer } from 'node:stream/consumers';
import { type ItemHash, sha256Hex } from '@skerry/protocol';
import { digestState } from '../../state/digest.ts';
import type { TestCore } from '../../testing/core.ts';
import { describeConfirmations, findAnchorFaults } from './anchor.ts';
import type { SimDatabases } from './databases.ts';
import type { Traffic } from './network.ts';
import type { Population } from './population.ts';
import { World } from './world.ts';

export interface SimOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly steps: number;
  /** Left out: hostile. */
  readonly isHostile?: boolean;
  readonly populations?: readonly Population[];
}

export interface SimResult {
  readonly digest: string;
  /** SHA-256 of everything that happened, in order: equal for equal seeds. */
  readonly trace: string;
  readonly acknowledged: number;
  readonly messages: number;
  readonly crashes: number;
  readonly reorgs: number;
  /** Files that messages name. */
  readonly files: number;
  /** Rounds of sessions until all agreed, after the storm. */
  readonly rounds: number;
  readonly traffic: Traffic;
  readonly elapsedMs: number;
  /** What is not as it must be; empty for a good run. */
  readonly faults: readonly string[];
}

export const STEP_MS = 2_000;
const CALM_ROUNDS_MAX = 12;
const CHAIN_ROUNDS_MAX = 40;
/** Between two rounds: files that could not be had are tried again, transactions are sent again. */
const CALM_ROUND_MS = 600_000;

const signal = new AbortController().signal;

export async function act(world: World, step: number): Promise<void> {
  const roll = world.dice.next();
  if (roll < 0.55) await world.send();
  else if (roll < 0.6) await world.upload();
  else if (roll < 0.74) await world.sync();
  else if (roll < 0.8) await world.fetch();
  else if (roll < 0.86) world.turnChain();
  else if (roll < 0.9) world.partition();
  else if (roll < 0.94) await world.crash(step);
  else if (roll < 0.96 && world.isHostile) world.turnClock();
  else world.nowMs += world.dice.below(120_000);
}

const digestOf = async ({ rooms }: TestCore) => {
  const { cursor: _, ...digest } = await digestState(rooms.db);
  return JSON.stringify(digest);
};

const digestsOf = (world: World) => Promise.all(world.nodes.map(({ core }) => digestOf(core!)));

/** Sessions of every node with every other, until all agree. @returns how many rounds it took */
export async function settle(world: World): Promise<number> {
  for (let round = 1; round <= CALM_ROUNDS_MAX; round++) {
    for (const { core } of world.nodes) {
      await core!.rooms.sync.syncer.round(signal);
      await core!.rooms.pipeline.idle();
    }
    for (const node of world.nodes) await world.fetch(node);
    if (new Set(await digestsOf(world)).size === 1 && (await findLacking(world)).length === 0) return round;
    world.nowMs += CALM_ROUND_MS;
  }
  return CALM_ROUNDS_MAX + 1;
}

/** Blocks, until every message in force is confirmed everywhere. */
export async function settleChain(world: World): Promise<void> {
  for (let round = 0; round < CHAIN_ROUNDS_MAX; round++) {
    world.nowMs += CALM_ROUND_MS;
    world.chain.mine();
    for (const node of world.nodes) await world.fetch(node);
    if ((await findConfirmationFaults(world)).length === 0) return;
  }
}

async function findConfirmationFaults(world: World): Promise<string[]> {
  const faults: string[] = [];
  const texts = new Set<string>();
  for (const { at, core } of world.nodes) {
    faults.push(...(await findAnchorFaults(core!, world.chain)).map((fault) => `node ${at}: ${fault}`));
    texts.add(await describeConfirmations(core!));
  }
  return texts.size === 1 ? faults : [...faults, 'the nodes confirm differently'];
}

/** Files that a message in force names and that a node has not. */
async function findLacking(world: World): Promise<string[]> {
  const faults: string[] = [];
  for (const { at, core } of world.nodes) {
    for (const hash of world.clients.files) {
      const file = await core!.rooms.files.get(hash as ItemHash).catch(() => undefined);
      const bytes = file && (await buffer(await file.open()));
      if (!bytes || sha256Hex(bytes) !== hash) faults.push(`node ${at} lacks the file ${hash.slice(0, 8)}`);
    }
  }
  return faults;
}

/** Nodes that do not say of themselves that they have everything. */
function findUnsynced(world: World): string[] {
  return world.nodes.flatMap(({ at, core }) => {
    const { state, later, clock } = core!.rooms.sync.syncer.view();
    return state === 'synced' && later === 0
      ? []
      : [`node ${at} says ${state} with ${later} later and a clock that is ${clock.state}`];
  });
}

export async function findFaults(world: World): Promise<string[]> {
  const faults: string[] = [];
  if (new Set(await digestsOf(world)).size !== 1) faults.push('the nodes differ');
  for (const { at, core } of world.nodes) {
    const rows = await core!.rooms.db.selectFrom('messages').select('item_hash').execute();
    const kept = new Set(rows.map((row) => row.item_hash));
    const lost = world.clients.acknowledged.filter(({ itemHash }) => !kept.has(itemHash));
    const forged = [...kept].filter((hash) => !world.clients.signed.has(hash));
    if (lost.length > 0) faults.push(`node ${at} lost ${lost.length} acknowledged messages`);
    if (forged.length > 0) faults.push(`node ${at} has ${forged.length} forged messages`);
  }
  return [...faults, ...(await findLacking(world)), ...(await findConfirmationFaults(world))];
}

/** One run: a storm, then calm. */
export async function simulate(
  { seed, nodes, steps, isHostile = true, populations = [] }: SimOptions,
  databases?: SimDatabases,
): Promise<SimResult> {
  const startMs = performance.now();
  await using stack = new AsyncDisposableStack();
  const world = new World({ seed, isHostile, populations });
  stack.defer(() => databases?.takeBack());
  await world.create(nodes, stack, databases);
  for (let step = 0; step < steps; step++) {
    world.nowMs += world.dice.below(STEP_MS);
    await world.wakeUp(step);
    await world.deliver();
    await act(world, step);
  }
  await world.heal();
  const rounds = await settle(world);
  const unsynced = findUnsynced(world);
  await settleChain(world);
  const faults = [...unsynced, ...(await findFaults(world))];
  const [digest] = await digestsOf(world);
  return {
    digest: sha256Hex(digest!),
    trace: sha256Hex(world.trace.join('\n')),
    acknowledged: world.clients.acknowledged.length,
    messages: world.nodes[0]!.core!.rooms.sync.set.index.size,
    crashes: world.crashes,
    reorgs: world.chain.reorgs,
    files: world.clients.files.size,
    rounds,
    traffic: world.traffic,
    elapsedMs: performance.now() - startMs,
    faults,
  };
}

/** A line of the result table. */
export function describeRun({ seed, nodes, steps, isHostile = true }: SimOptions, result: SimResult): string {
  const { acknowledged, messages, crashes, reorgs, files, rounds, traffic, elapsedMs } = result;
  const perNode = (bytes: number) => Math.round(bytes / nodes / Math.max(1, messages));
  return `seed ${seed}, ${nodes} nodes, ${steps} steps, ${isHostile ? 'hostile' : 'honest'}: ${acknowledged} acknowledged, ${messages} kept, ${files} files, ${crashes} crashes, ${reorgs} reorganisations, agreed after ${rounds} rounds, ${traffic.calls} calls; a node and message: ${perNode(traffic.rangeBytes)} bytes of ranges, ${perNode(traffic.messageBytes)} of messages, ${(elapsedMs / nodes / Math.max(1, messages)).toFixed(1)} ms; trace ${result.trace.slice(0, 12)}`;
}
