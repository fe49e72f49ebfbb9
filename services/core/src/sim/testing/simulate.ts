import { createLogger } from '@skerry/kit';
import { sha256Hex, sharedText } from '@skerry/protocol';
import type { Schema } from '../../db/schema.ts';
import { createTestDatabase } from '../../db/testing.ts';
import { digestState } from '../../state/digest.ts';
import { keepVerified, verifyFrame } from '../../sync/take.ts';
import { linkTo } from '../../sync/testing.ts';
import { MIGRATIONS, type TestCore } from '../../testing.ts';
import { Clients } from './clients.ts';
import { SeededDice } from './dice.ts';
import { CALM, forge, STORM, type Traffic, throughWeather, type Weather } from './network.ts';
import { type SimNode, startSimNode } from './node.ts';

export interface SimOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly steps: number;
}

export interface SimResult {
  readonly digest: string;
  /** SHA-256 of everything that happened, in order: equal for equal seeds. */
  readonly trace: string;
  readonly acknowledged: number;
  readonly messages: number;
  readonly crashes: number;
  /** Rounds of sessions until all agreed, after the storm. */
  readonly rounds: number;
  readonly traffic: Traffic;
  readonly elapsedMs: number;
  /** What is not as it must be; empty for a good run. */
  readonly faults: readonly string[];
}

const START_MS = 1_700_000_000_000;
const STEP_MS = 2_000;
const SKEW_MS = 900_000;
const CALM_ROUNDS_MAX = 12;
/** After the storm so much time passes that no clock's error and no ban counts. */
const HEALING_MS = 4 * 3_600_000;
const DOWN_STEPS = 15;

const log = createLogger('sim', 'silent');
const signal = new AbortController().signal;

interface Delivery {
  readonly atMs: number;
  readonly order: number;
  readonly to: SimNode;
  readonly frame: Buffer;
}

/** N nodes, a virtual clock, a virtual network, and trouble by the dice. One thing happens after another. */
class World {
  readonly dice: SeededDice;
  readonly clients: Clients;
  readonly nodes: SimNode[] = [];
  readonly traffic: Traffic = { calls: 0, rangeBytes: 0, messageBytes: 0 };
  readonly trace: string[] = [];
  weather: Weather = STORM;
  nowMs = START_MS;
  crashes = 0;
  #islands: number[] = [];
  #deliveries: Delivery[] = [];
  #order = 0;

  constructor(seed: number) {
    this.dice = new SeededDice(seed);
    this.clients = new Clients(this.dice);
  }

  isReachable(from: SimNode, to: SimNode): boolean {
    return to.core !== undefined && (this.#islands[from.at] ?? 0) === (this.#islands[to.at] ?? 0);
  }

  async create(count: number, stack: AsyncDisposableStack): Promise<void> {
    for (let at = 0; at < count; at++) {
      const database = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
      const links = Array.from({ length: count }, (_, other) => other)
        .filter((other) => other !== at)
        .map((other) =>
          throughWeather(
            linkTo(`node-${other}`, () => this.nodes[other]!.core!),
            this,
            () => this.isReachable(this.nodes[at]!, this.nodes[other]!),
          ),
        );
      const skewMs = Math.round((this.dice.next() - 0.5) * 2 * SKEW_MS);
      this.nodes.push({ at, database, skewMs, links, core: undefined, backAt: 0, isTorn: false });
    }
    for (const node of this.nodes) await this.start(node);
    stack.defer(async () => {
      for (const { core } of this.nodes) await core?.[Symbol.asyncDispose]();
    });
  }

  async start(node: SimNode): Promise<void> {
    const core = await startSimNode(node, () => this.nowMs, log);
    core.rooms.onKept(({ brought }) => {
      for (const { message } of brought) this.#gossip(node, sharedText(message)!);
    });
    await core.rooms.pipeline.idle();
  }

  #gossip(from: SimNode, text: string): void {
    for (const to of this.nodes) {
      if (to === from || !this.isReachable(from, to)) continue;
      const copies = this.dice.chance(this.weather.loss)
        ? 0
        : this.dice.chance(this.weather.duplication)
          ? 2
          : 1;
      for (let copy = 0; copy < copies; copy++) {
        const whole = Buffer.from(text);
        const frame = this.dice.chance(this.weather.forgery) ? forge(whole, this.dice) : whole;
        this.#deliveries.push({
          atMs: this.nowMs + this.dice.below(this.weather.delayMs),
          order: this.#order++,
          to,
          frame,
        });
      }
    }
  }

  async deliver(): Promise<void> {
    const due = this.#deliveries.filter(({ atMs }) => atMs <= this.nowMs);
    this.#deliveries = this.#deliveries.filter(({ atMs }) => atMs > this.nowMs);
    for (const { to, frame } of due.sort((a, b) => a.atMs - b.atMs || a.order - b.order)) {
      if (!to.core) continue;
      const verified = await verifyFrame(frame, to.core.rooms.taker);
      this.traffic.messageBytes += frame.length;
      this.trace.push(`gossip ${to.at} ${'worth' in verified ? verified.worth : 'taken'}`);
      await keepVerified([verified], to.core.rooms.taker);
      await to.core.rooms.pipeline.idle();
    }
  }

  #pickUp(): SimNode | undefined {
    const up = this.nodes.filter(({ core }) => core);
    return up[this.dice.below(Math.max(1, up.length))];
  }

  async send(): Promise<void> {
    const node = this.#pickUp();
    if (!node) return;
    const { body, itemHash, type, owner } = this.clients.next(this.nowMs);
    const { status } = await node.core!.post('/messages', body);
    await node.core!.rooms.pipeline.idle();
    if (status === 200 || status === 202) this.clients.acknowledged.push({ itemHash, type, owner });
    this.trace.push(`send ${node.at} ${itemHash.slice(0, 8)} ${status}`);
  }

  async sync(): Promise<void> {
    const node = this.#pickUp();
    if (!node) return;
    const isWhole = await node.core!.rooms.sync.syncer.round(signal);
    await node.core!.rooms.pipeline.idle();
    this.trace.push(`sync ${node.at} ${isWhole} ${node.core!.rooms.sync.set.index.size}`);
  }

  partition(): void {
    const count = 1 + this.dice.below(3);
    this.#islands = this.nodes.map(() => this.dice.below(count));
    this.trace.push(`islands ${this.#islands.join('')}`);
  }

  /** A node ends without a word; half of the time while it writes something, which is lost. */
  async crash(step: number): Promise<void> {
    const node = this.#pickUp();
    if (!node || this.nodes.filter(({ core }) => core).length < 2) return;
    this.crashes++;
    if (this.dice.chance(0.5)) {
      node.isTorn = true;
      await node.core!.post('/messages', this.clients.next(this.nowMs).body);
    }
    const { core } = node;
    node.core = undefined;
    node.backAt = step + 1 + this.dice.below(DOWN_STEPS);
    await core![Symbol.asyncDispose]();
    node.isTorn = false;
    this.trace.push(`crash ${node.at}`);
  }

  async wakeUp(step: number): Promise<void> {
    for (const node of this.nodes) if (!node.core && node.backAt <= step) await this.start(node);
  }

  async heal(): Promise<void> {
    this.weather = CALM;
    this.#islands = [];
    await this.wakeUp(Number.POSITIVE_INFINITY);
    this.nowMs += HEALING_MS;
    await this.deliver();
  }
}

async function act(world: World, step: number): Promise<void> {
  const roll = world.dice.next();
  if (roll < 0.68) await world.send();
  else if (roll < 0.84) await world.sync();
  else if (roll < 0.9) world.partition();
  else if (roll < 0.94) await world.crash(step);
  else world.nowMs += world.dice.below(120_000);
}

const digestOf = async ({ rooms }: TestCore) => {
  const { cursor: _, ...digest } = await digestState(rooms.db);
  return JSON.stringify(digest);
};

const digestsOf = (world: World) => Promise.all(world.nodes.map(({ core }) => digestOf(core!)));

/** Sessions of every node with every other, until all agree. @returns how many rounds it took */
async function settle(world: World): Promise<number> {
  for (let round = 1; round <= CALM_ROUNDS_MAX; round++) {
    for (const { core } of world.nodes) {
      await core!.rooms.sync.syncer.round(signal);
      await core!.rooms.pipeline.idle();
    }
    if (new Set(await digestsOf(world)).size === 1) return round;
  }
  return CALM_ROUNDS_MAX + 1;
}

async function findFaults(world: World): Promise<string[]> {
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
  return faults;
}

/** One run: a storm, then calm. */
export async function simulate({ seed, nodes, steps }: SimOptions): Promise<SimResult> {
  const startMs = performance.now();
  await using stack = new AsyncDisposableStack();
  const world = new World(seed);
  await world.create(nodes, stack);
  for (let step = 0; step < steps; step++) {
    world.nowMs += world.dice.below(STEP_MS);
    await world.wakeUp(step);
    await world.deliver();
    await act(world, step);
  }
  await world.heal();
  const rounds = await settle(world);
  const faults = await findFaults(world);
  const [digest] = await digestsOf(world);
  return {
    digest: sha256Hex(digest!),
    trace: sha256Hex(world.trace.join('\n')),
    acknowledged: world.clients.acknowledged.length,
    messages: world.nodes[0]!.core!.rooms.sync.set.index.size,
    crashes: world.crashes,
    rounds,
    traffic: world.traffic,
    elapsedMs: performance.now() - startMs,
    faults,
  };
}

/** A line of the result table. */
export function describeRun({ seed, nodes, steps }: SimOptions, result: SimResult): string {
  const { acknowledged, messages, crashes, rounds, traffic, elapsedMs } = result;
  const perNode = (bytes: number) => Math.round(bytes / nodes / Math.max(1, messages));
  return `seed ${seed}, ${nodes} nodes, ${steps} steps: ${acknowledged} acknowledged, ${messages} kept, ${crashes} crashes, agreed after ${rounds} rounds, ${traffic.calls} calls; a node and message: ${perNode(traffic.rangeBytes)} bytes of ranges, ${perNode(traffic.messageBytes)} of messages, ${(elapsedMs / nodes / Math.max(1, messages)).toFixed(1)} ms; trace ${result.trace.slice(0, 12)}`;
}
