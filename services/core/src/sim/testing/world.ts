import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase, startTestServer } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { sha256Hex, sharedText } from '@skerry/protocol';
import type { PeerLink } from '../../peers/sync/link.ts';
import { linkTo } from '../../peers/sync/testing/setup.ts';
import type { Schema } from '../../store/schema.ts';
import { MIGRATIONS } from '../../testing/core.ts';
import { PACKING } from './anchor.ts';
import { ChainView, createVirtualEmitter, EMITTER, STRANGER, unreachable, VirtualChain } from './chain.ts';
import { type ClientMessage, Clients } from './clients.ts';
import { SimClock } from './clock.ts';
import type { SimDatabases } from './databases.ts';
import { SeededDice } from './dice.ts';
import { CALM, forge, STORM, type Traffic, throughWeather, type Weather } from './network.ts';
import { type SimNode, startSimNode } from './node.ts';
import type { Population } from './population.ts';
import { type Crossing, createBlockSource, createFileSource } from './sources.ts';

const START_MS = 1_700_000_000_000;
/** With more nodes than this, nobody can reach the last one. */
const HIDDEN_FROM = 3;
/** After the storm so much time passes that no clock's error and no ban counts. */
const HEALING_MS = 8 * 3_600_000;
const DOWN_STEPS = 15;

/** More have more connections than the server that tests share. */
const SHARED_SERVER_NODES = 20;
const OWN_SERVER = { max_connections: '400' };

const FEE_MAX = BigInt(PACKING.maxFeeGwei) * 10n ** 9n;

const log = createLogger('sim', 'silent');
const signal = new AbortController().signal;

const inlineArchive = (messages: readonly unknown[]) =>
  JSON.stringify({ protocol: 'aleph', version: 1, content: { messages } });
/** Nobody has it. */
const LOST_ARCHIVE = JSON.stringify({
  protocol: 'aleph-offchain',
  version: 1,
  content: 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG',
});
/** The node met with the weather, or with the end of its power. */
const passOver = (): void => {};

const startOwnServer = async (stack: AsyncDisposableStack) =>
  stack.use(await startTestServer(log, OWN_SERVER)).url;

export interface WorldOptions {
  readonly seed: number;
  /** Clocks that are hours off and are set forward and back, and clients that date their messages as they like. */
  readonly isHostile: boolean;
  readonly populations: readonly Population[];
  /** Peers of a node that are no nodes of the run: it asks them first. */
  readonly peers?: (asker: number) => readonly PeerLink[];
}

interface Delivery {
  readonly atMs: number;
  readonly order: number;
  readonly to: SimNode;
  readonly frame: Buffer;
}

/** N nodes, a virtual clock, a virtual network, and trouble by the dice. One thing happens after another. */
export class World {
  readonly dice: SeededDice;
  readonly clients: Clients;
  readonly chain: VirtualChain;
  readonly nodes: SimNode[] = [];
  readonly traffic: Traffic = { calls: 0, rangeBytes: 0, messageBytes: 0 };
  readonly trace: string[] = [];
  weather: Weather = STORM;
  nowMs = START_MS;
  crashes = 0;
  #islands: number[] = [];
  #deliveries: Delivery[] = [];
  #order = 0;
  readonly seed: number;
  readonly populations: readonly Population[];
  readonly isHostile: boolean;
  readonly #peers: NonNullable<WorldOptions['peers']>;

  constructor({ seed, isHostile, populations, peers = () => [] }: WorldOptions) {
    this.dice = new SeededDice(seed);
    this.seed = seed;
    this.populations = populations;
    this.isHostile = isHostile;
    this.#peers = peers;
    this.clients = new Clients(this.dice, isHostile);
    this.chain = new VirtualChain(this.dice, () => this.nowMs);
  }

  isReachable(from: SimNode, to: SimNode): boolean {
    return (
      to.core !== undefined && !to.isHidden && (this.#islands[from.at] ?? 0) === (this.#islands[to.at] ?? 0)
    );
  }

  /** Several tries may be under way at once: each has a fate of its own, whatever comes first. */
  #cross(from: SimNode, to: SimNode, name: string): Crossing {
    if (!this.isReachable(from, to)) return 'lost';
    const fate = new SeededDice(
      Number.parseInt(sha256Hex(`${this.seed} ${this.nowMs} ${from.at} ${to.at} ${name}`).slice(0, 8), 16),
    );
    if (fate.chance(this.weather.loss)) return 'lost';
    return fate.chance(this.weather.forgery) ? 'changed' : 'through';
  }

  /** @param databases those to use; new ones where left out */
  async create(count: number, stack: AsyncDisposableStack, databases?: SimDatabases): Promise<void> {
    const serverUrl = count > SHARED_SERVER_NODES ? await startOwnServer(stack) : undefined;
    for (let at = 0; at < count; at++) {
      const database = databases
        ? await databases.lend()
        : stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, serverUrl, log }));
      const links = Array.from({ length: count }, (_, other) => other)
        .filter((other) => other !== at)
        .map((other) =>
          throughWeather(
            linkTo(`node-${other}`, () => this.nodes[other]!.core!),
            this,
            () => this.isReachable(this.nodes[at]!, this.nodes[other]!),
          ),
        );
      const clock = new SimClock(this.dice, this.nowMs, this.isHostile);
      const directory = await mkdtemp(join(tmpdir(), 'skerry-sim-'));
      stack.defer(() => rm(directory, { recursive: true, force: true }));
      const own = { database, directory, clock, links: [...this.#peers(at), ...links] };
      this.nodes.push(this.#createNode(at, count, own));
    }
    for (const node of this.nodes) await this.start(node);
    stack.defer(async () => {
      for (const { core } of this.nodes) await core?.[Symbol.asyncDispose]();
    });
  }

  #createNode(
    at: number,
    count: number,
    own: Pick<SimNode, 'database' | 'directory' | 'clock' | 'links'>,
  ): SimNode {
    const others = () => this.nodes.filter((node) => node.at !== at);
    const cross = (from: SimNode, name: string) => this.#cross(this.nodes[at]!, from, name);
    const crossChain = () => {
      if (this.dice.chance(this.weather.loss)) throw unreachable('the chain');
    };
    const blocks = createBlockSource(others, cross);
    const files = Array.from({ length: count }, (_, from) =>
      createFileSource(from, () => this.nodes[from]!, cross),
    );
    return {
      ...own,
      at,
      isHidden: at >= HIDDEN_FROM && at === count - 1,
      view: new ChainView(this.chain),
      emitter: at === 0 ? createVirtualEmitter(this.chain, FEE_MAX, crossChain) : undefined,
      files: files.filter((_, from) => from !== at),
      blocks,
      core: undefined,
      fetcher: undefined,
      missed: undefined,
      anchor: undefined,
      backAt: 0,
      torn: 'no',
    };
  }

  async start(node: SimNode): Promise<void> {
    const core = await startSimNode(node, this, log);
    core.rooms.onCommitted(({ toPassOn }) => {
      for (const { message } of toPassOn) this.#gossip(node, sharedText(message)!);
    });
    await core.rooms.pipeline.idle();
  }

  #gossip(from: SimNode, text: string): void {
    for (const to of this.nodes) {
      // Who cannot be reached gossips with nobody.
      if (to === from || from.isHidden || !this.isReachable(from, to)) continue;
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
      const { gossip } = to.core.rooms.intake;
      const read = await gossip.read([frame]);
      this.traffic.messageBytes += frame.length;
      this.trace.push(`gossip ${to.at} ${'fault' in read[0]! ? read[0].fault : 'taken'}`);
      await gossip.keep(read);
      await to.core.rooms.pipeline.idle();
    }
  }

  #pickUp(): SimNode | undefined {
    const up = this.nodes.filter(({ core }) => core);
    return up[this.dice.below(Math.max(1, up.length))];
  }

  async send(): Promise<void> {
    const population = this.populations[this.dice.below(this.populations.length + 1)];
    if (population) return population.act(this, this.dice);
    await this.submit(this.clients.next(this.nowMs));
  }

  /** A client brings a message to a node that is up. @returns the status; undefined where none is up */
  async submit({ body, itemHash, type, owner }: ClientMessage): Promise<number | undefined> {
    const node = this.#pickUp();
    if (!node) return undefined;
    const { status } = await node.core!.post('/messages', body);
    await node.core!.rooms.pipeline.idle();
    if (status === 200 || status === 202) this.clients.acknowledged.push({ itemHash, type, owner });
    this.trace.push(`send ${node.at} ${itemHash.slice(0, 8)} ${status}`);
    return status;
  }

  async sync(): Promise<void> {
    const node = this.#pickUp();
    if (!node) return;
    const isWhole = await node.core!.rooms.sync.syncer.round(signal);
    await node.core!.rooms.pipeline.idle();
    this.trace.push(`sync ${node.at} ${isWhole} ${node.core!.rooms.sync.set.index.size}`);
  }

  /** A file to a node that others can ask for it. */
  async upload(): Promise<void> {
    const node = this.#pickUp();
    const other = this.#pickUp();
    if (!node?.core || !other?.core || node.isHidden) return;
    if (this.dice.chance(0.5)) {
      const { form, fileHash, itemHash } = this.clients.nextUpload();
      const { status } = await node.core.post('/storage/store', form.body, form.headers);
      if (status === 200) this.#acknowledge(itemHash, fileHash);
      this.trace.push(`upload ${node.at} ${status}`);
      return;
    }
    const { text, fileHash, message } = this.clients.nextFile(this.nowMs);
    const added = await node.core.post('/storage/add_json', text);
    if (added.status !== 200) return;
    const { status } = await other.core.post('/messages', message.body);
    if (status === 200 || status === 202) this.#acknowledge(message.itemHash, fileHash);
    this.trace.push(`store ${node.at} ${other.at} ${status}`);
  }

  #acknowledge(itemHash: string, fileHash: string): void {
    this.clients.acknowledged.push({ itemHash, type: 'STORE', owner: -1 });
    this.clients.files.add(fileHash);
  }

  /** A node looks for what it lacks: files, and what the chain says. */
  async fetch(node = this.#pickUp()): Promise<void> {
    if (!node?.core) return;
    await node.core.rooms.pipeline.expire();
    await node.core.rooms.pipeline.idle();
    await node.missed!.round();
    while ((await node.fetcher!.look(signal)) > 0) await node.fetcher!.idle();
    // Each part after the one before has come to its end, or the run would not replay.
    await node.core.rooms.pipeline.idle();
    node.view.look();
    await node.anchor!.follow();
    await node.core.rooms.pipeline.idle();
    await node.anchor!.pack().catch(passOver);
    await node.core.rooms.pipeline.idle();
    this.trace.push(`fetch ${node.at} ${this.chain.height}`);
  }

  /** Something happens on the chain: mostly a block. */
  turnChain(): void {
    const roll = this.dice.next();
    if (roll < 0.2) this.chain.reorg();
    else if (roll < 0.25) this.chain.forgetSome();
    else if (roll < 0.3) this.chain.emit(STRANGER, inlineArchive([]));
    else if (roll < 0.4) this.chain.emit(EMITTER, this.dice.chance(0.5) ? 'garbage' : LOST_ARCHIVE);
    else this.chain.mine();
    this.trace.push(`chain ${this.chain.height} ${this.chain.blocks.at(-1)!.hash.slice(0, 8)}`);
  }

  /** Somebody sets a node's clock, right or wrong. */
  turnClock(): void {
    const node = this.nodes[this.dice.below(this.nodes.length)]!;
    node.clock.turn(this.dice, this.nowMs);
    this.trace.push(`clock ${node.at} ${node.clock.read(this.nowMs) - this.nowMs}`);
  }

  partition(): void {
    const count = 1 + this.dice.below(3);
    this.#islands = this.nodes.map(() => this.dice.below(count));
    this.trace.push(`islands ${this.#islands.join('')}`);
  }

  /** Nobody is cut off from others any more. */
  join(): void {
    this.#islands = [];
  }

  /** A node ends without a word; half of the time while it writes something, which is lost. */
  async crash(step: number): Promise<void> {
    const node = this.#pickUp();
    if (!node || this.nodes.filter(({ core }) => core).length < 2) return;
    this.crashes++;
    if (this.dice.chance(0.5)) await this.#tear(node);
    const { core } = node;
    node.core = undefined;
    node.backAt = step + 1 + this.dice.below(DOWN_STEPS);
    await core![Symbol.asyncDispose]();
    node.torn = 'no';
    this.trace.push(`crash ${node.at}`);
  }

  /** The power goes while the node writes a message, a file or what the chain says; nobody is told that it was taken. */
  async #tear(node: SimNode): Promise<void> {
    node.torn = this.dice.chance(0.5) ? 'before' : 'after';
    const roll = this.dice.below(3);
    if (roll === 0) await node.core!.post('/messages', this.clients.next(this.nowMs).body);
    // What only a node has that nobody can reach is nowhere else.
    else if (roll === 1 && !node.isHidden) {
      const { form } = this.clients.nextUpload();
      await node.core!.post('/storage/store', form.body, form.headers);
    } else {
      node.view.look();
      await node.anchor!.follow().catch(passOver);
    }
  }

  async wakeUp(step: number): Promise<void> {
    for (const node of this.nodes) if (!node.core && node.backAt <= step) await this.start(node);
  }

  async heal(): Promise<void> {
    this.weather = CALM;
    this.join();
    // Half of the time nobody sets the clocks right.
    if (this.dice.chance(0.5)) for (const { clock } of this.nodes) clock.setRight(this.nowMs);
    await this.wakeUp(Number.POSITIVE_INFINITY);
    this.nowMs += HEALING_MS;
    await this.deliver();
  }
}
