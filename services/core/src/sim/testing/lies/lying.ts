import { ERASE_AFTER_MS, eraseForgotten } from '../../../intake/erase.ts';
import type { SyncView } from '../../../peers/sync/view.ts';
import { digestState } from '../../../state/digest.ts';
import type { SimDatabases } from '../databases.ts';
import { SeededDice } from '../dice.ts';
import { CALM, STORM } from '../network.ts';
import type { SimNode } from '../node.ts';
import { STEP_MS } from '../simulate.ts';
import { World } from '../world.ts';
import { Liar, type Lie } from './liar.ts';
import { type Planned, planMessages, type Sent, signPlanned } from './plan.ts';

export interface LyingOptions {
  readonly seed: number;
  /** The last one joins when texts are erased, and asks the liar first. */
  readonly nodes: number;
  readonly steps: number;
  readonly isLying: boolean;
}

export interface LyingResult {
  /** What became of each planned message, the same on all nodes: a line each. */
  readonly outcomes: readonly string[];
  readonly faults: readonly string[];
  readonly rounds: number;
  readonly calls: number;
  readonly lies: ReadonlyMap<Lie, number>;
}

/** Rounds of sessions after which honest nodes agree; and what a liar can have a node ask it for in one session, about. */
const ROUNDS_MAX = 12;
const CALLS_PER_SESSION_MAX = 400;
const ROUND_MS = 900_000;
/** In steps. */
const FOREVER = Number.POSITIVE_INFINITY;

const signal = new AbortController().signal;

class Lying {
  readonly #world: World;
  readonly #plan: readonly Planned[];
  readonly #sent: Sent[] = [];
  readonly #taken = new Set<number>();
  readonly liar: Liar | undefined;
  sessions = 0;

  constructor({ seed, nodes, steps, isLying }: LyingOptions) {
    this.#plan = planMessages(new SeededDice(seed), Math.floor(steps / 2), nodes - 1);
    const peers = (asker: number) => (this.liar ? [this.liar.linkFor(asker)] : []);
    this.#world = new World({ seed, isHostile: false, populations: [], peers });
    const world = this.#world;
    this.liar = isLying
      ? new Liar(seed, {
          get nowMs() {
            return world.nowMs;
          },
          set nowMs(nowMs) {
            world.nowMs = nowMs;
          },
          findSource: (asker) =>
            world.nodes.find(({ at, core }) => core && at !== asker && at !== world.nodes.length - 1)?.core,
          signed: world.clients.signed,
        })
      : undefined;
  }

  get world(): World {
    return this.#world;
  }

  async create(nodes: number, stack: AsyncDisposableStack, databases?: SimDatabases): Promise<void> {
    await this.#world.create(nodes, stack, databases);
    this.#world.weather = { ...STORM, forgery: 0 };
    for (const { clock } of this.#world.nodes) clock.setRight(this.#world.nowMs);
    const last = this.#world.nodes.at(-1)!;
    await last.core![Symbol.asyncDispose]();
    Object.assign(last, { core: undefined, backAt: FOREVER });
  }

  get #up(): SimNode[] {
    return this.#world.nodes.filter(({ core }) => core);
  }

  /** The next planned message to the node that is to take it, or to whichever does. */
  async send(): Promise<boolean> {
    const at = this.#sent.length;
    const one = this.#plan[at];
    if (!one) return false;
    const sent = signPlanned(one, at, this.#sent[one.about]?.itemHash, this.#world.nowMs);
    this.#world.clients.signed.add(sent.itemHash);
    this.#sent.push(sent);
    await this.#bring(at);
    return true;
  }

  async #bring(at: number): Promise<void> {
    const { node, fileNode } = this.#plan[at]!;
    const { body, file } = this.#sent[at]!;
    const up = this.#up;
    if (file !== undefined) {
      const { core } = up.find((one) => one.at === fileNode) ?? up[0]!;
      const headers = { 'content-type': 'application/octet-stream' };
      await core!.post('/storage/add_file', Buffer.from(file), headers);
    }
    const first = up.filter((one) => one.at === node);
    for (const { core } of [...first, ...up]) {
      const { status } = await core!.post('/messages', body);
      await core!.rooms.pipeline.idle();
      if (status !== 200 && status !== 202) continue;
      this.#taken.add(at);
      return;
    }
  }

  /** What no node took comes again. */
  async insist(): Promise<void> {
    for (const at of this.#sent.keys()) if (!this.#taken.has(at)) await this.#bring(at);
  }

  async act(step: number): Promise<void> {
    const { dice } = this.#world;
    const roll = dice.next();
    if (roll < 0.5 && (await this.send())) return;
    if (roll < 0.8) await this.#sync();
    else if (roll < 0.87) await this.#world.fetch();
    else if (roll < 0.91) this.#world.partition();
    else if (roll < 0.94) await this.#world.crash(step);
    else if (this.liar) {
      const up = this.#up;
      await this.liar.push(up[dice.below(up.length)]!.core!);
    }
  }

  async #sync(): Promise<void> {
    this.sessions++;
    await this.#world.sync();
  }

  /** Everything that was forgotten a day ago leaves the disks. */
  async erase(): Promise<void> {
    this.#world.nowMs += ERASE_AFTER_MS + ROUND_MS;
    for (const { core } of this.#up) {
      await eraseForgotten(core!.rooms.db, core!.rooms.now());
      await core!.rooms.pipeline.idle();
    }
  }

  /** Sessions of all until they agree. @returns how many rounds it took */
  async settle(): Promise<number> {
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      for (const { core } of this.#up) {
        this.sessions++;
        await core!.rooms.sync.syncer.round(signal);
        await core!.rooms.pipeline.idle();
      }
      for (const node of this.#up) await this.#world.fetch(node);
      if ((await this.#listDigests()).size === 1 && (await this.outcomes()).every(isOne)) return round;
      this.#world.nowMs += ROUND_MS;
    }
    return ROUNDS_MAX + 1;
  }

  /** Whoever is down comes back, and nodes that were apart meet. */
  async meet(): Promise<void> {
    const world = this.#world;
    const { weather } = world;
    world.weather = CALM;
    world.join();
    await world.wakeUp(Number.MAX_SAFE_INTEGER);
    await this.settle();
    world.weather = weather;
  }

  async #listDigests(): Promise<Set<string>> {
    const digests = this.#up.map(async ({ core }) => {
      const { cursor: _, ...digest } = await digestState(core!.rooms.db);
      return JSON.stringify(digest);
    });
    return new Set(await Promise.all(digests));
  }

  /** Of each planned message what the nodes say, each once. */
  async outcomes(): Promise<string[][]> {
    const told = await Promise.all(
      this.#up.map(async ({ core }) => {
        const rows = await core!.rooms.db.selectFrom('messages').selectAll().execute();
        const rowOf = new Map(rows.map((row) => [row.item_hash, row]));
        return this.#sent.map(({ itemHash }, at) => {
          const row = rowOf.get(itemHash);
          if (!row) return `${at} ${this.#plan[at]!.kind} is missing`;
          const { status, sender, owner, erased, type } = row;
          // A text that came to prove whose a forgotten message is goes a day later.
          const text = row.content === null && row.source_text === null ? 'no text' : 'text';
          const left = status === 'forgotten' ? (erased ?? 'forgotten') : `${erased} ${text}`;
          return [at, this.#plan[at]!.kind, status, type, sender, owner, left].join(' ');
        });
      }),
    );
    return this.#sent.map((_, at) => [...new Set(told.map((lines) => lines[at]!))]);
  }

  async faults(): Promise<string[]> {
    const digests = (await this.#listDigests()).size;
    const apart = (await this.outcomes()).filter((told) => !isOne(told)).map((told) => told.join(' / '));
    const known = this.#world.clients.signed;
    const unreachable = this.#world.nodes.filter(({ isHidden }) => isHidden).map((node) => `node-${node.at}`);
    const faults = await Promise.all(
      this.#up.map(async ({ at, core }) => {
        const view = core!.rooms.sync.syncer.view();
        const rows = await core!.rooms.db.selectFrom('messages').select('item_hash').execute();
        const made = rows.filter((row) => !known.has(row.item_hash)).length;
        return [
          ...describeView(at, view, unreachable),
          ...(made > 0 ? [`node ${at} has ${made} that nobody signed`] : []),
        ];
      }),
    );
    const calls = this.liar?.calls ?? 0;
    return [
      ...(digests > 1 ? [`the nodes have ${digests} digests`] : []),
      ...apart,
      ...faults.flat(),
      ...(calls > this.sessions * CALLS_PER_SESSION_MAX ? [`the liar was asked ${calls} times`] : []),
    ];
  }
}

const isOne = (told: readonly string[]) => told.length === 1;

/** A node must know that it has everything, and hold nothing against honest ones that it can reach. */
function describeView(
  at: number,
  { state, later, clock, peers }: SyncView,
  unreachable: readonly string[],
): string[] {
  const honest = peers.filter(({ name }) => name !== 'liar' && !unreachable.includes(name));
  const blamed = honest.filter(({ points, failure }) => points > 0 || failure !== null);
  return [
    ...(state === 'synced' && later === 0 ? [] : [`node ${at} says ${state} with ${later} later`]),
    ...(clock.state === 'right' ? [] : [`node ${at} says that its clock is ${clock.state}`]),
    ...blamed.map(
      ({ name, points, failure }) => `node ${at} has ${points} points, ${failure} against ${name}`,
    ),
  ];
}

/** A run of honest nodes with a peer that lies to each of them, or the same without it. */
export async function simulateLying(options: LyingOptions, databases?: SimDatabases): Promise<LyingResult> {
  await using stack = new AsyncDisposableStack();
  stack.defer(() => databases?.takeBack());
  const lying = new Lying(options);
  const { world } = lying;
  await lying.create(options.nodes, stack, databases);
  const storm = async (from: number, to: number) => {
    for (let step = from; step < to; step++) {
      world.nowMs += world.dice.below(STEP_MS);
      await world.wakeUp(step);
      await world.deliver();
      await lying.act(step);
    }
  };
  await storm(0, options.steps / 2);
  // Nodes that were apart for a day, while texts were erased, are another matter (docs/messages.md).
  await lying.meet();
  await lying.erase();
  await storm(options.steps / 2, options.steps);
  while (await lying.send());
  await world.heal();
  await lying.insist();
  await lying.settle();
  await lying.erase();
  const rounds = await lying.settle();
  const outcomes = (await lying.outcomes()).map((told) => told.join(' / '));
  const { calls = 0, lies = new Map() } = lying.liar ?? {};
  return { outcomes, faults: await lying.faults(), rounds, calls, lies };
}
