import { randomUUID } from 'node:crypto';
import { backoffMs, type Logger, pause, Slots } from '@skerry/kit';
import { AppError, LIMITS, type ShortKey } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Intake } from '../../intake/intake.ts';
import { NO_TALLY, type PassedOn, type Tally } from '../../intake/passed-on.ts';
import type { Schema } from '../../store/schema.ts';
import { Awaited, findVain } from './awaited.ts';
import { SessionFailures } from './blame/failures.ts';
import { ByName } from './by-name/by-name.ts';
import type { ContentFiles } from './by-name/contents.ts';
import { type NetworkClock, offsetOf } from './clock.ts';
import type { PeerGreeting, PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';
import { offerLacking, PeerLacks } from './offers.ts';
import { Patience } from './patience.ts';
import { Reputation } from './reputation.ts';
import { checkSelf, type ProvesOwn } from './self.ts';
import {
  countLater,
  Declined,
  ForgedError,
  MISSING_MAX,
  reconcile,
  type SessionOptions,
  type SessionResult,
} from './session.ts';
import { transfer } from './transfer.ts';
import { describeSync, newPeer, type PeerState, type SyncView } from './view.ts';

/** A peer that has so many more messages is copied from page by page; ranges would list them all. */
const TRANSFER_MESSAGES = 5_000;
const TRANSFER_SHARE = 0.5;
/** Comparisons in one session because the clock was moved during the one before. */
const RECONCILED_AGAIN_MAX = 2;
const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 60_000;
/** Between two sessions with one peer, whatever happens: others set no pace by coming and going. */
const REST_MS = 5_000;

export interface SyncerOptions {
  readonly db: Kysely<Schema>;
  readonly set: NodeSet;
  /** Where contents are kept that a peer is asked for; none is where left out. */
  readonly files?: ContentFiles;
  readonly intake: Pick<Intake, 'peer' | 'offer'>;
  readonly links: readonly PeerLink[];
  /** Between two sessions with one peer. */
  readonly intervalMs: number;
  readonly clock: NetworkClock;
  /** Whether what is missing is fetched here; another process on the database does where it is not. So where left out. */
  readonly isLeading?: (() => boolean) | undefined;
  /** Whether an answer is this node's own; none is where left out. */
  readonly provesOwn?: ProvesOwn;
  readonly log: Logger;
  readonly random?: () => number;
}

/** Keeps this node in step with its peers: everything at first, then what either lacks, again and again. */
export class Syncer {
  /** Of this process. */
  readonly nodeId = randomUUID();
  readonly reputation: Reputation;
  readonly #options: SyncerOptions;
  readonly #failures: SessionFailures;
  /** How often the clock was moved. */
  #moves = 0;
  readonly #peers: PeerState[];
  readonly #lacks = new Map<PeerState, PeerLacks>();
  readonly #declined = new Map<PeerState, Declined>();
  /** Of the peers that this process only compares with. */
  readonly #awaited = new Map<PeerState, Awaited>();
  readonly #byName: ByName;
  /** Of the peers whose next session is waited for. */
  readonly #wakes = new Map<PeerState, () => void>();
  /** One transfer at a time: a second peer would send the same. */
  readonly #transfers = new Slots(1);

  constructor(options: SyncerOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#failures = new SessionFailures({ uptime: () => clock.uptime(), log });
    this.#byName = new ByName(options);
    this.reputation = new Reputation(() => clock.uptime());
    clock.onMoved = (movedMs) => this.#onClockMoved(movedMs);
    this.#peers = options.links.map((link) => newPeer(link, new Patience(() => clock.uptime())));
  }

  view(): SyncView {
    const { set, clock, intervalMs } = this.#options;
    // First: where the clock was set, it moves what is known of the peers.
    const nowMs = clock.now();
    return describeSync({
      nodeId: this.nodeId,
      set,
      clock,
      peers: this.#peers.map((peer) => ({ ...peer, points: this.reputation.pointsOf(peer.link.name) })),
      staleAfterMs: intervalMs * 3,
      nowMs,
    });
  }

  /** Something may have been missed: sessions begin as soon as may be, but none with a peer that fails, or is banned. */
  nudge(): void {
    for (const [peer, wake] of this.#wakes)
      if (peer.failure === null && !this.reputation.isBanned(peer.link.name)) wake();
  }

  /** What this node was known to have is not certain any more: it is in step with nobody until it has compared again. */
  startOver(): void {
    this.#declined.clear();
    this.#awaited.clear();
    for (const peer of this.#peers) {
      peer.patience.restore();
      if (peer.syncedMs !== null) Object.assign(peer, { state: 'syncing', syncedMs: null });
    }
    this.nudge();
  }

  /** What was ahead of the clock may be due now: until the next session nobody knows. */
  #onClockMoved(movedMs: number): void {
    this.#moves++;
    this.#declined.clear();
    for (const peer of this.#peers) {
      if (peer.later > 0) Object.assign(peer, { state: 'syncing', syncedMs: null, later: 0 });
      else if (peer.syncedMs !== null) peer.syncedMs += movedMs;
      if (peer.forgottenMs !== null) peer.forgottenMs += movedMs;
    }
    this.nudge();
  }

  /** Follows every peer until the signal ends. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#peers.map((peer) => this.#follow(peer, signal)));
  }

  async #follow(peer: PeerState, signal: AbortSignal): Promise<void> {
    const { intervalMs, random = Math.random } = this.#options;
    while (!signal.aborted) {
      const isDone = await this.syncWith(peer, signal);
      const waitMs = isDone
        ? intervalMs * (0.75 + random() / 2)
        : backoffMs(peer.failures, RETRY_BASE_MS, Math.min(intervalMs, RETRY_MAX_MS), random());
      await this.#wait(peer, waitMs, signal);
    }
  }

  async #wait(peer: PeerState, milliseconds: number, signal: AbortSignal): Promise<void> {
    const restMs = Math.min(milliseconds, REST_MS);
    const woken = new AbortController();
    const startMs = performance.now();
    this.#wakes.set(peer, () => woken.abort());
    await pause(milliseconds, AbortSignal.any([signal, woken.signal]));
    this.#wakes.delete(peer);
    await pause(Math.max(0, startMs + restMs - performance.now()), signal);
  }

  /** One session with every peer, one after another. For tests and the simulator, where nobody waits. */
  async round(signal: AbortSignal): Promise<boolean> {
    let isWhole = true;
    for (const peer of this.#peers) isWhole = (await this.syncWith(peer, signal)) && isWhole;
    return isWhole;
  }

  /** @returns whether the session came to its end */
  async syncWith(peer: PeerState, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    const startMs = clock.uptime();
    // It counts again once the peer answers; what passed since a session that failed is counted.
    peer.patience.pause();
    if (this.reputation.isBanned(peer.link.name)) {
      Object.assign(peer, { state: 'banned', failures: peer.failures + 1 });
      return false;
    }
    try {
      const result = await this.#session(peer, signal);
      if (peer.state === 'self') return true;
      if (!result) {
        Object.assign(peer, { state: 'syncing', failures: peer.failures + 1, failure: null });
        return false;
      }
      peer.sessionMs = clock.uptime() - startMs;
      Object.assign(peer, { state: 'synced', syncedMs: clock.now(), failures: 0, failure: null });
      peer.patience.end();
      this.#failures.clear(peer);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      this.#blame(peer, error);
      this.#failures.note(peer, error);
      return false;
    }
  }

  /** @returns undefined: the process that leads has not fetched everything yet */
  async #session(peer: PeerState, signal: AbortSignal): Promise<Pick<SessionResult, 'tally'> | undefined> {
    const { set, intake, isLeading = () => true, provesOwn = () => false, log } = this.#options;
    const greeting = await this.#greet(peer, signal);
    if (greeting.nodeId === this.nodeId) {
      await checkSelf(peer.link, provesOwn, signal);
      Object.assign(peer, { ...newPeer(peer.link, peer.patience), state: 'self' });
      return { tally: NO_TALLY };
    }
    peer.messages = greeting.messages;
    peer.address = greeting.address ?? null;
    if (peer.state !== 'synced') peer.state = 'syncing';
    peer.patience.begin();
    if (peer.patience.tellOver())
      log.warn({ peer: peer.link.name }, 'a peer does not bring what it says to have: it is not waited for');
    const lacks = this.#lacks.get(peer) ?? new PeerLacks();
    this.#lacks.set(peer, lacks);
    const others = [...this.#lacks.values()].filter((other) => other !== lacks);
    const common = {
      set,
      source: {
        read: (frames: readonly Buffer[]) =>
          this.#excuse(peer, () => intake.peer.read(frames, peer.link.name)),
        keep: (...given: Parameters<PassedOn['keep']>) =>
          this.#excuse(peer, () => intake.peer.keep(...given)),
      },
      declined: this.#declinedOf(peer),
      yieldsTo: (key: ShortKey) => lacks.yieldsTo(key, others),
      signal,
      isLater: this.#isLater,
      onBrought: (count: number) => peer.patience.renew(count),
    };
    if (!isLeading()) return this.#compare(peer, greeting, common);
    await this.#transferFrom(peer, common);
    let result: SessionResult;
    let [moves, again] = [this.#moves, 0];
    // The clock may be moved meanwhile: then what was ahead of it may be due.
    do {
      moves = this.#moves;
      result = await reconcile(peer.link, {
        ...common,
        declined: this.#declinedOf(peer),
        onProgress: this.#progressOf(peer),
      });
    } while (moves !== this.#moves && again++ < RECONCILED_AGAIN_MAX);
    const failed = await this.#byName.ask(peer, greeting, {
      ...common,
      progress: () => this.#progressOf(peer),
    });
    this.#blame(peer, failed);
    if (result.tally.taken > 0)
      log.info({ peer: peer.link.name, ...result.tally }, 'received missing messages');
    peer.later = countLater(result, greeting, set);
    await this.#excuse(peer, () => this.#offer(peer, lacks, result, greeting, signal));
    return result;
  }

  /** What it forged was counted as it came. */
  #blame({ link }: PeerState, failure: unknown): void {
    const isMisbehaved = failure instanceof AppError && failure.code === 'PEER_MISBEHAVED';
    if (isMisbehaved && !(failure instanceof ForgedError)) this.reputation.noteMisbehaved(link.name);
  }

  /** Told again and again of all that came: a peer that ends a session, by whatever failure, is held to account for it. */
  #progressOf(peer: PeerState): (tally: Tally) => void {
    let counted = NO_TALLY;
    return (tally) => {
      peer.taken += tally.taken - counted.taken;
      this.reputation.noteForged(peer.link.name, tally.forged - counted.forged);
      counted = tally;
    };
  }

  /** Does what only this node can fail at. Where it does, neither that time nor what follows is held against the peer. */
  async #excuse<T>(peer: PeerState, work: () => Promise<T>): Promise<T> {
    const startMs = this.#options.clock.uptime();
    try {
      return await work();
    } catch (error) {
      peer.patience.pause(startMs);
      this.#failures.noteOwn(error);
      throw error;
    }
  }

  #declinedOf(peer: PeerState): Declined {
    const declined = this.#declined.get(peer) ?? new Declined(this.#options.clock.now);
    this.#declined.set(peer, declined);
    return declined;
  }

  /** How this process knows that it is in step where another one keeps it so. */
  async #compare(
    peer: PeerState,
    greeting: PeerGreeting,
    common: SessionOptions,
  ): Promise<Pick<SessionResult, 'tally'> | undefined> {
    const { set } = this.#options;
    const awaited = this.#awaited.get(peer) ?? new Awaited(set);
    this.#awaited.set(peer, awaited);
    peer.patience.renew(awaited.look());
    const missing: ShortKey[] = [];
    const result = await reconcile(peer.link, { ...common, missing });
    // Of what is listed in part the end is not known.
    if (missing.length < MISSING_MAX) peer.later = countLater(result, greeting, set);
    const onForged = (count: number) => this.reputation.noteForged(peer.link.name, count);
    const find = (keys: readonly ShortKey[]) => findVain(peer.link, keys, { ...common, onForged });
    return (await awaited.note(missing, peer.patience.isOver ? find : undefined)) ? result : undefined;
  }

  /** Whether a message of this time is ahead of the clock. */
  readonly #isLater = (time: number): boolean =>
    time > Math.floor(this.#options.clock.now() / 1000) + LIMITS.futureSeconds;

  async #greet({ link }: PeerState, signal: AbortSignal): Promise<PeerGreeting> {
    const { clock } = this.#options;
    const sentMs = clock.machineNow();
    const greeting = await link.greet(signal);
    const offsetMs = greeting.clock && offsetOf(sentMs, clock.machineNow(), greeting.clock.timeMs);
    if (offsetMs !== undefined && greeting.nodeId !== this.nodeId) clock.note(link.name, offsetMs);
    return greeting;
  }

  /** A peer that does not ask is offered what it lacks. That it takes nothing is no failure of the session. */
  async #offer(
    peer: PeerState,
    lacks: PeerLacks,
    { peerLacks }: SessionResult,
    { clock }: PeerGreeting,
    signal: AbortSignal,
  ): Promise<void> {
    const { db, set, log } = this.#options;
    // What is ahead of its clock it would not take.
    const upToSeconds = clock
      ? Math.floor((clock.timeMs + clock.correctionMs) / 1000) + LIMITS.futureSeconds
      : Number.POSITIVE_INFINITY;
    const offered = lacks.decide(peerLacks, ({ time }) => time <= upToSeconds);
    try {
      peer.given += await offerLacking(peer.link, offered, lacks, { db, set, signal });
    } catch (error) {
      if (!(error instanceof AppError) || signal.aborted) throw error;
      log.debug({ err: error, peer: peer.link.name }, 'a peer accepted no offer');
    }
  }

  /** In turns: a peer that is slow, or only claims to have much, holds up no other one. */
  async #transferFrom(peer: PeerState, common: Parameters<typeof reconcile>[1]): Promise<void> {
    // Nobody who has little to bring waits for the transfer of another one, which may have no end.
    let isEnded = this.#missingOf(peer) <= TRANSFER_MESSAGES && !(await this.#placeOf(peer));
    while (!isEnded) {
      // That another one has its turn is not this one's fault.
      peer.patience.pause();
      using _turn = await this.#transfers.take(common.signal);
      peer.patience.begin();
      isEnded = await this.#transferTurn(peer, common);
    }
  }

  /** How many messages the peer has more, of those that are due. */
  #missingOf({ messages, later }: PeerState): number {
    return (messages ?? 0) - later - this.#options.set.index.size;
  }

  /** Where a transfer from the peer had come. */
  #placeOf(peer: PeerState): Promise<{ readonly place: string } | undefined> {
    const places = this.#options.db.selectFrom('sync_transfers').select('place');
    return this.#excuse(peer, () => places.where('peer', '=', peer.link.name).executeTakeFirst());
  }

  /** @returns whether the peer needs no more turns */
  async #transferTurn(peer: PeerState, common: Parameters<typeof reconcile>[1]): Promise<boolean> {
    const { db, set, clock, log } = this.#options;
    const { name } = peer.link;
    const begun = await this.#placeOf(peer);
    const missing = this.#missingOf(peer);
    const { size } = set.index;
    const isFar = missing > TRANSFER_MESSAGES && size < (missing + size) * TRANSFER_SHARE;
    if (!begun && !isFar) return true;
    peer.state = 'syncing';
    log.info({ peer: name, missing }, begun ? 'resuming the transfer' : 'starting the transfer');
    const insertPlace = (place: string) =>
      db
        .insertInto('sync_transfers')
        .values({ peer: name, place })
        .onConflict((conflict) => conflict.column('peer').doUpdateSet({ place }))
        .execute();
    const startMs = clock.uptime();
    const { tally, isEnded } = await transfer(peer.link, {
      ...common,
      onProgress: this.#progressOf(peer),
      place: begun?.place ?? '',
      savePlace: async (place) => void (await this.#excuse(peer, () => insertPlace(place))),
      isWaitedFor: () => this.#transfers.waiting > 0,
      uptime: () => clock.uptime(),
    });
    if (!isEnded) {
      log.info({ peer: name, ...tally }, 'another peer has its turn to transfer messages');
      return false;
    }
    await this.#excuse(peer, () => db.deleteFrom('sync_transfers').where('peer', '=', name).execute());
    const perSecond = Math.round((tally.taken * 1000) / (clock.uptime() - startMs));
    log.info({ peer: name, ...tally, per_second: perSecond }, 'finished the transfer');
    return true;
  }
}
