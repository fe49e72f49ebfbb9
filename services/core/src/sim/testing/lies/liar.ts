import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import {
  AppError,
  answerRanges,
  bytesToHex,
  formatBound,
  type Range,
  type ShortKey,
  type SyncKey,
  shortHashOf,
  shortKeyOf,
  verifyShared,
} from '@skerry/protocol';
import { acceptMessage } from '../../../intake/accept.ts';
import { acceptErasedFrame, erasedText, isErasedFrame } from '../../../intake/erased.ts';
import { keyOfAccepted } from '../../../intake/pipeline/statement.ts';
import type { StoredMessage } from '../../../intake/stored.ts';
import type { PeerClock, PeerLink } from '../../../peers/sync/link.ts';
import { SetIndex } from '../../../peers/sync/set-index.ts';
import { linkTo } from '../../../peers/sync/testing/setup.ts';
import type { TestCore } from '../../../testing/core.ts';
import { createQuickSigner } from '../../../testing/quick-signer.ts';
import { SeededDice } from '../dice.ts';
import { OWNERS } from './plan.ts';

/** What a peer may do in one session that no honest node does. */
const LIES = [
  'withholds',
  'trickles',
  'skeletons',
  'digests',
  'pages',
  'floods',
  'replays',
  'clock',
  'slow',
  'honest',
] as const;
export type Lie = (typeof LIES)[number];

const HOUR_MS = 3_600_000;
/** Of a fresh key, in one session, and in all. */
const FLOOD = 20;
const FLOOD_MAX = 200;
/** A page that is not thin (transfer.ts). */
const PAGE_FRAMES = 260;
const PAGES_MAX = 100;
/** Nearly as long as a request may take. */
const SLOW_MS = 55_000;

const ENDLESS = Number.POSITIVE_INFINITY;
const signal = new AbortController().signal;

/** What a liar finds: the time, which it can let pass, and honest nodes that tell it everything. */
export interface LiarWorld {
  nowMs: number;
  /** Undefined: none is up. */
  findSource(asker: number): TestCore | undefined;
  /** Everything that was ever signed. */
  readonly signed: Set<string>;
}

interface Session {
  readonly lie: Lie;
  /** By which it answers. */
  readonly index: SetIndex;
  /** What it sends in the place of what it knows, by the hash part of the key. */
  readonly frames: ReadonlyMap<string, Buffer>;
  pages: number;
}

const away = () => new AppError('UPSTREAM_UNAVAILABLE', 'the liar does not answer');

function keyOfFrame(frame: Buffer): SyncKey {
  if (isErasedFrame(frame)) return keyOfAccepted(acceptErasedFrame(frame, ENDLESS));
  return keyOfAccepted(acceptMessage(verifyShared(frame, ENDLESS)));
}

const keyHashOf = (frame: Buffer) => bytesToHex(keyOfFrame(frame).id.subarray(0, 32));
const shortOf = (frame: Buffer) => shortHashOf(shortKeyOf(keyOfFrame(frame)).id);

function copyOf(core: TestCore): SyncKey[] {
  const { index } = core.rooms.sync.set;
  return Array.from({ length: index.size }, (_, at) => {
    const { time, id } = index.keyAt(at);
    return { time, id: id.slice() };
  });
}

/** A configured peer that means no good: in each session another lie, and to each node another one. */
export class Liar {
  readonly #dice: SeededDice;
  readonly #world: LiarWorld;
  readonly #key: Signer = createQuickSigner(`0x${'ef'.repeat(32)}`);
  /** Everything it was ever told, by the hash part of the key. */
  readonly #heard = new Map<string, Buffer>();
  readonly #flood: Buffer[] = [];
  /** What it signed to bear out its lies, by what that is about. */
  readonly #bearing = new Map<string, Buffer>();
  readonly #sessions = new Map<number, Session>();
  /** How often it was asked anything. */
  calls = 0;
  readonly lies = new Map<Lie, number>();

  constructor(seed: number, world: LiarWorld) {
    this.#dice = new SeededDice(seed ^ 0x11a2);
    this.#world = world;
  }

  linkFor(asker: number): PeerLink {
    const find = () => {
      const core = this.#world.findSource(asker);
      if (!core) throw away();
      return core;
    };
    const real = linkTo('liar', find);
    const sessionOf = () => this.#sessions.get(asker)!;
    const called = async <T>(answer: () => T | Promise<T>): Promise<T> => {
      this.calls++;
      if (this.#sessions.get(asker)?.lie === 'slow') {
        this.#world.nowMs += SLOW_MS;
        if (this.#dice.chance(0.3)) throw away();
      }
      return answer();
    };
    return {
      name: 'liar',
      greet: async () => {
        const core = find();
        const session = await this.#begin(core, asker);
        this.#sessions.set(asker, session);
        return called(async () => {
          const greeting = await real.greet(signal);
          return {
            ...greeting,
            nodeId: 'liar',
            messages: session.lie === 'pages' ? 10 ** 9 : session.index.size,
            clock: this.#clock(session, greeting.clock!),
          };
        });
      },
      askRanges: (question) => called(() => this.#ranges(sessionOf(), question)),
      fetchMessages: (keys) => called(() => this.#fetch(sessionOf(), keys, real)),
      fetchPage: (place) => called(() => this.#page(sessionOf(), place, real)),
      offer: (texts) => called(() => ({ taken: texts.length, known: 0, refused: 0, forged: 0 })),
    };
  }

  #clock({ lie }: Session, clock: PeerClock): PeerClock {
    const lieMs = lie === 'clock' ? Math.floor((this.#dice.next() - 0.5) * 48 * HOUR_MS) : 0;
    return { timeMs: this.#world.nowMs + lieMs, correctionMs: lie === 'clock' ? -lieMs : clock.correctionMs };
  }

  /** Chooses the lie of a session and what it takes. */
  async #begin(core: TestCore, asker: number): Promise<Session> {
    const lie = LIES[this.#dice.below(LIES.length)]!;
    this.lies.set(lie, (this.lies.get(lie) ?? 0) + 1);
    await this.#hear(core);
    const frames = new Map<string, Buffer>();
    const put = (frame: Buffer) => frames.set(shortOf(frame), frame);
    if (lie === 'skeletons') for (const frame of await this.#forgeSkeletons(core)) put(frame);
    else if (lie === 'replays') for (const frame of this.#heard.values()) put(frame);
    else if (lie === 'floods') for (const frame of this.#makeFlood(core)) put(frame);
    const told = new Set(frames.keys());
    const keys = copyOf(core).filter((key) => !told.has(shortHashOf(shortKeyOf(key).id)));
    // Each node is told of another half.
    const shown = lie === 'withholds' ? keys.filter(({ id }) => (id[0]! + asker) % 2 === 0) : keys;
    const index = SetIndex.of([...shown, ...[...frames.values()].map(keyOfFrame)]);
    return { lie, index, frames, pages: 0 };
  }

  async #hear(core: TestCore): Promise<void> {
    const { frames } = await linkTo('source', () => core).fetchPage('', signal);
    for (const frame of frames) if (!isErasedFrame(frame)) this.#heard.set(shortOf(frame), frame);
  }

  /**
   * What it says is left of messages whose texts others have, and what it signed to bear that out. Of erased ones nobody can prove it
   * wrong (docs/security.md).
   */
  async #forgeSkeletons(core: TestCore): Promise<Buffer[]> {
    const rows = await core.rooms.db
      .selectFrom('messages')
      .selectAll()
      .where('erased', 'is', null)
      .orderBy('item_hash')
      .execute();
    const forged = rows.flatMap((row) => {
      const frame = Buffer.from(erasedText(this.#forge(row)));
      try {
        keyOfFrame(frame);
        return [frame];
      } catch {
        return [];
      }
    });
    return [...forged, ...this.#bearing.values()];
  }

  #forge(row: StoredMessage): StoredMessage {
    // Of a content that is a file no session brings the proof (docs/security.md).
    const borneOut = row.source_text !== null && this.#dice.chance(0.7) ? this.#borneOut(row) : [];
    const others: (() => Partial<StoredMessage>)[] = [
      () => ({ subject: 'lied', content_type: 'lied' }),
      ...(row.form === 'envelope'
        ? [() => ({ type: 'AGGREGATE' }), () => ({ time: row.time - 5 }), () => ({ channel: 'lied' })]
        : []),
    ];
    const changes = borneOut.length > 0 ? borneOut : others;
    return { ...row, ...changes[this.#dice.below(changes.length)]!() };
  }

  /** Whose it is and what it amended, with what the liar signs for that. */
  #borneOut(row: StoredMessage): (() => Partial<StoredMessage>)[] {
    const { address } = this.#key;
    return [
      () => ({ type: 'POST', content_type: 'amend', subject: this.#forgottenPost() }),
      // Of whom it permits, and whose message it forgets.
      () => ({ ...this.#forgottenByOwn(row), owner: address }),
      ...(row.form === 'envelope'
        ? [() => ({ ...this.#forgottenByOwn(row), sender: address, owner: address })]
        : []),
    ];
  }

  /** Signs what bears out its lies, once each. @returns its hash */
  #bear(name: string, draft: Pick<MessageDraft, 'type' | 'content'>): string {
    const timestamp = Math.floor(this.#world.nowMs / 1000);
    const known = this.#bearing.get(name);
    if (known) return keyHashOf(known);
    const { body, itemHash } = signMessage(
      { ...draft, timestamp, nonce: `bears ${name}` } as MessageDraft,
      this.#key,
    );
    this.#world.signed.add(itemHash);
    this.#bearing.set(name, Buffer.from(body));
    return itemHash;
  }

  /** A post of its own that it forgot: what amended it is forgotten, too. */
  #forgottenPost(): string {
    const post = this.#bear('post', { type: 'POST', content: { type: 'note', content: 'bait' } });
    this.#bear('forgotten post', { type: 'FORGET', content: { hashes: [post] } });
    return post;
  }

  #forgottenByOwn({ item_hash: hash }: StoredMessage): Record<string, never> {
    const authorizations = OWNERS.map(({ address }) => ({ address }));
    this.#bear('permission', {
      type: 'AGGREGATE',
      content: { key: 'security', content: { authorizations } },
    });
    this.#bear(hash, { type: 'FORGET', content: { hashes: [hash] } });
    return {};
  }

  /** Valid messages: notes, FORGETs of what honest keys signed, and messages whose file nobody has. */
  #makeFlood(core: TestCore): Buffer[] {
    const { set } = core.rooms.sync;
    for (let made = 0; made < FLOOD && this.#flood.length < FLOOD_MAX; made++) {
      const target = set.index.size > 0 ? set.nameOf(set.index.keyAt(this.#dice.below(set.index.size))) : '';
      const isForget = target !== '' && this.#dice.chance(0.4);
      const { body, itemHash } = signMessage(
        {
          type: isForget ? 'FORGET' : 'POST',
          content: isForget ? { hashes: [target] } : { type: 'note', content: { n: this.#flood.length } },
          timestamp: Math.floor(this.#world.nowMs / 1000) - this.#dice.below(60),
          nonce: `flood ${this.#flood.length}`,
        },
        this.#key,
      );
      this.#world.signed.add(itemHash);
      this.#flood.push(Buffer.from(body));
    }
    return this.#flood;
  }

  /** Frames that it pushes without being asked: what is old, what it made, what nobody signed. */
  async push(core: TestCore): Promise<void> {
    const old = [...this.#heard.values()];
    const some = [...this.#makeFlood(core).slice(-FLOOD), ...old.slice(-FLOOD)];
    const { gossip } = core.rooms.intake;
    await gossip.keep(await gossip.read(some, 'liar'));
    const texts = (await this.#forgeSkeletons(core)).slice(0, FLOOD);
    await gossip.keep(await gossip.read(texts, 'liar'));
  }

  #ranges({ lie, index }: Session, question: readonly Range[]) {
    const answer =
      lie === 'digests'
        ? question.map(
            ({ lower, upper }): Range => ({
              kind: 'fingerprint',
              lower,
              upper,
              fingerprint: Uint8Array.from({ length: 16 }, () => this.#dice.below(256)),
            }),
          )
        : answerRanges(index, question);
    return { answer, sizeBytes: 100 };
  }

  async #fetch({ lie, frames }: Session, keys: readonly ShortKey[], real: PeerLink): Promise<Buffer[]> {
    const forged = keys.flatMap(({ id }) => frames.get(shortHashOf(id)) ?? []);
    const rest = keys.filter(({ id }) => !frames.has(shortHashOf(id)));
    const all = [...forged, ...(rest.length > 0 ? await real.fetchMessages(rest, signal) : [])];
    if (lie === 'trickles') return all.slice(0, 1);
    if (lie === 'withholds') return all.filter(() => this.#dice.chance(0.5));
    return all;
  }

  /** The first page again and again, each time a little further. */
  async #page(session: Session, place: string, real: PeerLink) {
    if (session.lie !== 'pages') return real.fetchPage(place, signal);
    this.#world.nowMs += 1_000;
    const { frames } = await real.fetchPage('', signal);
    const next = formatBound({ time: 1 + session.pages++ / PAGES_MAX, prefix: new Uint8Array() });
    const full = Array.from({ length: PAGE_FRAMES }, (_, at) => frames[at % Math.max(1, frames.length)]!);
    return { frames: frames.length > 0 ? full : [], next };
  }
}
