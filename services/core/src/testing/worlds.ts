import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { CREDIT_CHANNEL, CREDIT_POST, NETWORK_POST, nodeIdOf } from '@skerry/protocol';
import type { Sent } from './arrivals.ts';
import { instanceContent, signers } from './core.ts';
import { createQuickSigner } from './quick-signer.ts';

/** Draws numbers. */
interface Dice {
  /** A whole number below `count`. */
  below(count: number): number;
  chance(probability: number): boolean;
}

const T0 = 1_700_000_000;
/** How far apart messages are: a revocation reaches back ten minutes. */
const STEPS_SECONDS = [1, 400, 900, 900, 3_000];
/** How far a message is dated from those around it; most are not. */
const AWAY_SECONDS = [0, 0, 0, 0, 0, 0, -500, -2_000, -20_000, 700];
/** How long after its time a message was there first; most came in time. */
const LATE_MS = [0, 0, 0, 0, 0, 0, 0, 700_000, 2_000_000, 9_000_000];
const TX = `0x${'12'.repeat(32)}`;
/** What nobody ever signed. */
const NOWHERE = 'ab'.repeat(32);

const { alice, bob, scheduler, node, otherNode, credit, monitor } = signers;
const carol = createQuickSigner(`0x${'ca'.repeat(32)}`);

/** What messages speak of each other by. */
type Sort =
  | 'note'
  | 'amend'
  | 'security'
  | 'profile'
  | 'machine'
  | 'change'
  | 'word'
  | 'program'
  | 'forget'
  | 'credit';

interface Draft {
  readonly by: Signer;
  readonly type: string;
  readonly sort: Sort;
  readonly content: object;
  readonly channel?: string;
}

/** How often each is drawn in a world that has it. */
const DRAFTS: Readonly<Record<string, { readonly weight: number; draft(world: World): Draft }>> = {
  note: {
    weight: 3,
    draft: (world) => {
      const tags = world.dice.chance(0.3) ? { tags: ['a'] } : {};
      return world.ofSomebody('POST', 'note', { type: 'note', content: { n: world.count }, ...tags });
    },
  },
  amend: {
    weight: 5,
    draft: (world) => {
      const ref = world.one(world.pick(['note', 'note', 'note', 'amend', 'word']));
      return world.ofSomebody('POST', 'amend', { type: 'amend', ref, content: { n: world.count } });
    },
  },
  security: {
    weight: 4,
    draft: ({ authorizations }) => ({
      ...{ by: alice, type: 'AGGREGATE', sort: 'security' },
      content: { key: 'security', content: { authorizations: authorizations() } },
    }),
  },
  forget: {
    weight: 5,
    draft: (world) => {
      const hashes = new Set(
        Array.from({ length: 1 + world.dice.below(2) }, () => world.one(world.pick(world.sorts))),
      );
      return world.ofSomebody('FORGET', 'forget', { hashes: [...hashes] });
    },
  },
  profile: {
    weight: 3,
    draft: (world) => {
      const content = { [world.pick(['x', 'y'])]: world.count, [world.pick(['y', 'z'])]: null };
      return world.ofSomebody('AGGREGATE', 'profile', { key: 'profile', content });
    },
  },
  machine: {
    weight: 1,
    draft: (world) =>
      world.ofSomebody('INSTANCE', 'machine', { ...instanceContent, name: `m${world.count}` }),
  },
  update: {
    weight: 2,
    draft: (world) => ({
      ...{ by: world.somebody(), type: 'INSTANCE_UPDATE', sort: 'change' },
      content: { instance_id: world.one('machine'), name: `m${world.count}` },
    }),
  },
  control: {
    weight: 2,
    draft: (world) => ({
      ...{ by: world.somebody(), type: 'INSTANCE_CONTROL', sort: 'change' },
      content: { instance_id: world.one('machine'), action: world.pick(['stop', 'start', 'restart']) },
    }),
  },
  allocation: {
    weight: 2,
    draft: (world) => {
      const { address } = world.pick([node, otherNode]);
      const content = {
        ...{
          instance_id: world.one('machine'),
          node_id: nodeIdOf(address),
          node_address: address,
          ipv6: 'fd00::1',
        },
        ...{ reason: null, decided_at_ms: world.count },
      };
      return {
        by: scheduler,
        type: 'POST',
        sort: 'word',
        content: { type: NETWORK_POST.allocation, content },
      };
    },
  },
  status: {
    weight: 2,
    draft: (world) => {
      const content = {
        ...{ instance_id: world.one('machine'), phase: world.pick(['running', 'failed', 'stopped']) },
        ...{ reason: null, observed_at_ms: world.count, restart_id: null },
      };
      const by = world.pick([node, otherNode]);
      return { by, type: 'POST', sort: 'word', content: { type: NETWORK_POST.instanceStatus, content } };
    },
  },
  program: {
    weight: 1,
    draft: (world) => {
      const content = {
        name: `p${world.count}`,
        code: 'print(1)',
        runtime: 'python3',
        memory: 128,
        timeout: 5,
      };
      return world.ofSomebody('PROGRAM', 'program', content);
    },
  },
  distribution: {
    weight: 1,
    draft: (world) => {
      const amount = 100 * (1 + world.dice.below(50));
      const line = { address: world.pick([alice, bob]).address, amount, tx_hash: TX, log_index: world.count };
      const content = { distribution: { chain_id: 1, credits: [line] } };
      const by = world.pick([credit, credit, monitor]);
      return { by, ...ofCredit({ type: CREDIT_POST.distribution, content }) };
    },
  },
  expense: {
    weight: 1,
    draft: (world) => {
      const nanocredits = `${1_000_000 * (1 + world.dice.below(300))}`;
      const line = { address: world.pick([alice, bob]).address, ref: world.one('machine'), nanocredits };
      const start = T0 + world.count;
      const content = { expense: { start_date: start, end_date: start + 60, credits: [line] } };
      return { by: credit, ...ofCredit({ type: CREDIT_POST.expense, content }) };
    },
  },
};
/** Worlds differ in what they have at all; each has these. */
const ALWAYS: readonly string[] = ['note', 'amend', 'security', 'forget'];

const ofCredit = (content: object) =>
  ({ type: 'POST', sort: 'credit', content, channel: CREDIT_CHANNEL }) as const;

/** Messages that grant, revoke, forget, amend, pay for and change each other, as dice have it: whatever one has to do with another. */
export class World {
  readonly sent: Sent[] = [];
  readonly dice: Dice;
  readonly #bySort = new Map<Sort, string[]>();
  #seconds = 0;

  constructor(dice: Dice, size: number) {
    this.dice = dice;
    const drafts = Object.entries(DRAFTS).flatMap(([name, { weight, draft }]) => {
      const times = ALWAYS.includes(name) ? 1 + dice.below(3) : this.pick([0, 0, 1, 4]);
      return Array.from({ length: weight * times }, () => draft);
    });
    while (this.count < size) this.#send(this.pick(drafts)(this));
  }

  get count(): number {
    return this.sent.length;
  }

  get sorts(): readonly Sort[] {
    return [...this.#bySort.keys(), 'note'];
  }

  pick<T>(list: readonly T[]): T {
    return list[this.dice.below(list.length)]!;
  }

  /** One of those that were signed before: most have to do with the same few. */
  one(sort: Sort): string {
    const list = this.#bySort.get(sort) ?? [];
    if (list.length === 0 || this.dice.chance(0.02)) return NOWHERE;
    return this.pick(this.dice.chance(0.6) ? list.slice(0, 2) : list);
  }

  somebody(): Signer {
    return this.pick([alice, alice, bob, bob, carol]);
  }

  /** Mostly in Alice's name. */
  ofSomebody(type: string, sort: Sort, content: object): Draft {
    const by = this.somebody();
    const isOwn = by === alice || this.dice.chance(0.2);
    return { by, type, sort, content: isOwn ? content : { ...content, address: alice.address } };
  }

  /** Whom Alice permits what. */
  readonly authorizations = (): object[] =>
    [bob, carol].flatMap(({ address }) => {
      if (this.dice.chance(0.4)) return [];
      const types = this.dice.chance(0.15)
        ? { types: [this.pick(['POST', 'FORGET', 'INSTANCE', 'AGGREGATE'])] }
        : {};
      const posts = this.dice.chance(0.15) ? { post_types: [this.pick(['note', 'amend'])] } : {};
      return [{ address, ...types, ...posts }];
    });

  #send({ by, type, sort, content, channel = 'world' }: Draft): void {
    this.#seconds += this.pick(STEPS_SECONDS);
    const timestamp = T0 + this.#seconds + this.pick(AWAY_SECONDS);
    const draft = { type, content, channel, timestamp, nonce: `${this.count}` } as MessageDraft;
    const { body, itemHash } = signMessage(draft, by);
    const lateMs = this.pick(LATE_MS);
    this.sent.push({ body, itemHash, ...(lateMs === 0 ? {} : { notedMs: timestamp * 1000 + lateMs }) });
    this.#bySort.set(sort, [...(this.#bySort.get(sort) ?? []), itemHash]);
  }
}
