import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { instanceContent } from '../../testing/core.ts';
import { createQuickSigner } from '../../testing/quick-signer.ts';
import { SeededDice } from './dice.ts';
import type { SimNode } from './node.ts';
import { act, findFaults, type SimOptions, STEP_MS, settle, settleChain } from './simulate.ts';
import { World } from './world.ts';

/** An owner who grants and revokes, and a delegate who dates what it signs as it likes. */
const OWNER = createQuickSigner(`0x${'ca'.repeat(32)}`);
const DELEGATE = createQuickSigner(`0x${'ba'.repeat(32)}`);
const HOSTILE_STEPS = 0.4;
/** How long the last grant holds: longer than a revocation reaches back. */
const GRANTED_MS = 1_200_000;
/** What no clock of a run is off by, twice, and the time that a date may be chosen within. */
const AFTER_REVOCATION_MS = 3_600_000;

interface Signed {
  readonly itemHash: string;
  readonly type: string;
  /** A node whose clock is behind may refuse it. */
  readonly isTaken: boolean;
}

export interface HostileResult {
  /** Messages of the delegate that came long after the last revocation. */
  readonly strikes: number;
  readonly faults: readonly string[];
  readonly rounds: number;
}

class Hostility {
  readonly #world: World;
  readonly #dice: SeededDice;
  readonly #things: Signed[] = [];
  /** Seconds at which the delegate had a permission. */
  readonly #granted: number[] = [];
  #count = 0;

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#dice = new SeededDice(seed ^ 0x5eed);
  }

  get #seconds(): number {
    return Math.floor(this.#world.nowMs / 1000);
  }

  #pick<T>(some: readonly T[]): T | undefined {
    return some[this.#dice.below(Math.max(1, some.length))];
  }

  async send(by: Signer, type: string, content: unknown, timestamp: number, node?: SimNode): Promise<Signed> {
    const draft = { type, content, timestamp, nonce: `hostile ${this.#count++}` } as MessageDraft;
    const { body, itemHash } = signMessage(draft, by);
    this.#world.clients.signed.add(itemHash);
    const to = node ?? this.#pick(this.#world.nodes.filter(({ core }) => core));
    const answer = await to?.core?.post('/messages', body);
    await to?.core?.rooms.pipeline.idle();
    return { itemHash, type, isTaken: answer?.status === 200 };
  }

  /** By the first node that takes it. */
  async insist(send: (node: SimNode) => Promise<Signed>): Promise<Signed> {
    for (const node of this.#world.nodes) {
      const signed = await send(node);
      if (signed.isTaken) return signed;
    }
    throw new Error('no node takes what the owner signs');
  }

  grant(delegates: readonly Signer[], node?: SimNode): Promise<Signed> {
    if (delegates.length > 0) this.#granted.push(this.#seconds);
    const authorizations = delegates.map(({ address }) => ({ address }));
    return this.send(
      OWNER,
      'AGGREGATE',
      { key: 'security', content: { authorizations } },
      this.#seconds,
      node,
    );
  }

  async make(node?: SimNode): Promise<Signed> {
    const made = this.#dice.chance(0.5)
      ? await this.send(OWNER, 'INSTANCE', instanceContent, this.#seconds, node)
      : await this.send(OWNER, 'POST', { type: 'note', content: {} }, this.#seconds, node);
    this.#things.push(made);
    return made;
  }

  /** At a date that is convenient, or none that anybody believes. */
  strike(target: Signed | undefined, node?: SimNode): Promise<Signed> {
    const now = this.#seconds;
    const granted = this.#granted.at(-1) ?? 0;
    const date = this.#pick([0, now - this.#dice.below(600), now + 500, granted, granted, granted + 60])!;
    const inName = { address: OWNER.address };
    const roll = this.#dice.below(4);
    if (!target || roll === 0)
      return this.send(DELEGATE, 'INSTANCE', { ...instanceContent, ...inName }, date, node);
    if (roll === 1 && target.type === 'INSTANCE')
      return this.send(
        DELEGATE,
        'INSTANCE_CONTROL',
        { instance_id: target.itemHash, action: 'stop' },
        date,
        node,
      );
    if (roll === 2 && target.type === 'POST')
      return this.send(
        DELEGATE,
        'POST',
        { type: 'amend', ref: target.itemHash, ...inName, content: { by: 'the delegate' } },
        date,
        node,
      );
    return this.send(DELEGATE, 'FORGET', { hashes: [target.itemHash], ...inName }, date, node);
  }

  async act(): Promise<void> {
    const roll = this.#dice.next();
    if (roll < 0.15) await this.grant([DELEGATE]);
    else if (roll < 0.3) await this.grant([]);
    else if (roll < 0.55) await this.make();
    // Anybody may date an instance of its own.
    else if (roll < 0.65)
      await this.send(DELEGATE, 'INSTANCE', instanceContent, this.#dice.below(2) * this.#seconds);
    else await this.strike(this.#pick(this.#things));
  }
}

/** What a strike made of the owner's things, and of itself, on each node. */
async function findHarm(
  world: World,
  strikes: readonly Signed[],
  fresh: readonly Signed[],
): Promise<string[]> {
  const faults: string[] = [];
  for (const { at, core } of world.nodes) {
    const statusOf = async (hash: string) => (await core!.get(`/messages/${hash}/status`)).body.status;
    for (const { itemHash, type } of strikes) {
      const status = await statusOf(itemHash);
      if (status === 'processed' || status === 'pending')
        faults.push(`node ${at}: a ${type} of a revoked delegate is ${status}`);
    }
    for (const { itemHash, type } of fresh) {
      const status = await statusOf(itemHash);
      if (status !== 'processed') faults.push(`node ${at}: the owner's ${type} is ${status}`);
      if (type !== 'INSTANCE') continue;
      const { body } = await core!.get(`/instances/${itemHash}`);
      if (body.desired !== 'running') faults.push(`node ${at}: the owner's instance is ${body.desired}`);
    }
  }
  return faults;
}

/** A run with an owner and a delegate who lies about dates; at its end a last revocation, and strikes long after it. */
export async function simulateHostile({ seed, nodes, steps }: SimOptions): Promise<HostileResult> {
  await using stack = new AsyncDisposableStack();
  const world = new World({ seed: seed, isHostile: false, populations: [] });
  await world.create(nodes, stack);
  const hostility = new Hostility(world, seed);
  for (let step = 0; step < steps; step++) {
    world.nowMs += world.dice.below(STEP_MS);
    await world.wakeUp(step);
    await world.deliver();
    await act(world, step);
    if (world.dice.chance(HOSTILE_STEPS)) await hostility.act();
  }
  await world.heal();
  await hostility.insist((node) => hostility.grant([DELEGATE], node));
  world.nowMs += GRANTED_MS;
  await hostility.insist((node) => hostility.grant([], node));
  const fresh: Signed[] = [];
  for (let made = 0; made < 3; made++) fresh.push(await hostility.insist((node) => hostility.make(node)));
  world.nowMs += AFTER_REVOCATION_MS;
  const strikes: Signed[] = [];
  // Some of the nodes have not heard of the revocation yet.
  for (const node of world.nodes)
    for (const target of [...fresh, undefined]) strikes.push(await hostility.strike(target, node));
  const rounds = await settle(world);
  await settleChain(world);
  await settle(world);
  return {
    strikes: strikes.length,
    rounds,
    faults: [...(await findFaults(world)), ...(await findHarm(world, strikes, fresh))],
  };
}
