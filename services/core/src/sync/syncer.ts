import { randomUUID } from 'node:crypto';
import { backoffMs, type Logger, pause } from '@skerry/kit';
import { AppError, type ShortKey } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';
import { offerLacking, PeerLacks } from './offers.ts';
import { Reputation } from './reputation.ts';
import { Declined, ForgedError, reconcile, type SessionResult, transfer } from './session.ts';
import type { Taker, Tally } from './take.ts';
import { describeSync, type PeerState, type SyncView } from './view.ts';

/** A peer that has so many more messages is copied from page by page; ranges would list them all. */
const TRANSFER_MESSAGES = 5_000;
const TRANSFER_SHARE = 0.5;
const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 60_000;

export interface SyncerOptions {
  readonly db: Kysely<Schema>;
  readonly set: NodeSet;
  readonly taker: Taker;
  readonly links: readonly PeerLink[];
  /** Between two sessions with one peer. */
  readonly intervalMs: number;
  readonly now: () => number;
  readonly log: Logger;
  readonly random?: () => number;
}

/** Keeps this node in step with its peers: everything at first, then what either lacks, again and again. */
export class Syncer {
  /** Of this process. */
  readonly nodeId = randomUUID();
  readonly reputation: Reputation;
  readonly #options: SyncerOptions;
  readonly #declined: Declined;
  readonly #peers: PeerState[];
  readonly #lacks = new Map<PeerState, PeerLacks>();
  #wakes: (() => void)[] = [];
  #transfer: Promise<unknown> = Promise.resolve();

  constructor(options: SyncerOptions) {
    this.#options = options;
    this.reputation = new Reputation(options.now);
    this.#declined = new Declined(options.now);
    this.#peers = options.links.map((link) => ({
      link,
      state: 'new',
      messages: null,
      taken: 0,
      given: 0,
      syncedMs: null,
      failures: 0,
      failure: null,
    }));
  }

  view(): SyncView {
    const { set, now, intervalMs } = this.#options;
    return describeSync({
      nodeId: this.nodeId,
      set,
      peers: this.#peers.map((peer) => ({ ...peer, points: this.reputation.pointsOf(peer.link.name) })),
      staleAfterMs: intervalMs * 3,
      nowMs: now(),
    });
  }

  /** Something may have been missed: sessions begin now. */
  nudge(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }

  /** Follows every peer until the signal ends. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#peers.map((peer) => this.#follow(peer, signal)));
  }

  async #follow(peer: PeerState, signal: AbortSignal): Promise<void> {
    const { intervalMs, random = Math.random } = this.#options;
    while (!signal.aborted) {
      const isDone = await this.syncWith(peer, signal);
      if (peer.state === 'self') return;
      const waitMs = isDone
        ? intervalMs * (0.75 + random() / 2)
        : backoffMs(peer.failures, RETRY_BASE_MS, Math.min(intervalMs, RETRY_MAX_MS), random());
      await this.#wait(waitMs, signal);
    }
  }

  async #wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wakes.push(() => woken.abort());
    await pause(milliseconds, AbortSignal.any([signal, woken.signal]));
  }

  /** One session with every peer, one after another. For tests and the simulator, where nobody waits. */
  async round(signal: AbortSignal): Promise<boolean> {
    let isWhole = true;
    for (const peer of this.#peers) isWhole = (await this.syncWith(peer, signal)) && isWhole;
    return isWhole;
  }

  /** @returns whether the session came to its end */
  async syncWith(peer: PeerState, signal: AbortSignal): Promise<boolean> {
    const { now, log } = this.#options;
    const { name } = peer.link;
    if (this.reputation.isBanned(name)) {
      Object.assign(peer, { state: 'banned', failures: peer.failures + 1 });
      return false;
    }
    try {
      const result = await this.#session(peer, signal);
      if (peer.state === 'self') return true;
      this.reputation.noteForged(name, result.tally.forged);
      Object.assign(peer, { state: 'synced', syncedMs: now(), failures: 0, failure: null });
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      if (error instanceof ForgedError) this.reputation.noteForged(name, error.forged);
      else if (error instanceof AppError && error.code === 'PEER_MISBEHAVED')
        this.reputation.noteMisbehaved(name);
      const failure = error instanceof AppError ? error.code : 'INTERNAL';
      if (failure === 'INTERNAL') log.error({ err: error, peer: name }, 'keeping in step with a peer failed');
      else if (peer.failure !== failure)
        log.warn({ err: error, peer: name }, 'a peer cannot be kept in step with');
      Object.assign(peer, { state: 'failing', failures: peer.failures + 1, failure });
      return false;
    }
  }

  async #session(peer: PeerState, signal: AbortSignal): Promise<Pick<SessionResult, 'tally'>> {
    const { set, taker, log } = this.#options;
    const greeting = await peer.link.greet(signal);
    if (greeting.nodeId === this.nodeId) {
      peer.state = 'self';
      return { tally: { taken: 0, forged: 0, refused: 0, later: 0 } };
    }
    peer.messages = greeting.messages;
    if (peer.state !== 'synced') peer.state = 'syncing';
    const taken = peer.taken;
    const onProgress = (tally: Tally) => {
      peer.taken = taken + tally.taken;
    };
    const lacks = this.#lacks.get(peer) ?? new PeerLacks();
    this.#lacks.set(peer, lacks);
    const yieldsTo = (key: ShortKey) => lacks.yieldsTo(key);
    const common = { set, taker, declined: this.#declined, yieldsTo, signal, onProgress };
    await this.#transferFrom(peer, common);
    const result = await reconcile(peer.link, common);
    if (result.tally.taken > 0) log.info({ peer: peer.link.name, ...result.tally }, 'took what was lacking');
    await this.#offer(peer, lacks, result, signal);
    return result;
  }

  /** A peer that does not ask is offered what it lacks. That it takes nothing is no failure of the session. */
  async #offer(
    peer: PeerState,
    lacks: PeerLacks,
    { peerLacks }: SessionResult,
    signal: AbortSignal,
  ): Promise<void> {
    const { db, set, log } = this.#options;
    try {
      peer.given += await offerLacking(peer.link, lacks.decide(peerLacks), lacks, { db, set, signal });
    } catch (error) {
      if (!(error instanceof AppError) || signal.aborted) throw error;
      log.debug({ err: error, peer: peer.link.name }, 'a peer took no offer');
    }
  }

  /** One transfer at a time: a second peer would send the same. */
  async #transferFrom(peer: PeerState, common: Parameters<typeof reconcile>[1]): Promise<void> {
    const before = this.#transfer;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#transfer = promise;
    await before;
    try {
      await this.#transferAlone(peer, common);
    } finally {
      resolve();
    }
  }

  async #transferAlone(peer: PeerState, common: Parameters<typeof reconcile>[1]): Promise<void> {
    const { db, set, log } = this.#options;
    const { name } = peer.link;
    const begun = await db
      .selectFrom('sync_transfers')
      .selectAll()
      .where('peer', '=', name)
      .executeTakeFirst();
    const missing = (peer.messages ?? 0) - set.index.size;
    const isFar = missing > TRANSFER_MESSAGES && set.index.size < (peer.messages ?? 0) * TRANSFER_SHARE;
    if (!begun && !isFar) return;
    peer.state = 'syncing';
    log.info({ peer: name, missing }, begun ? 'the transfer goes on' : 'the transfer begins');
    const savePlace = async (place: string) => {
      await db
        .insertInto('sync_transfers')
        .values({ peer: name, place })
        .onConflict((conflict) => conflict.column('peer').doUpdateSet({ place }))
        .execute();
    };
    const startMs = performance.now();
    const tally = await transfer(peer.link, { ...common, place: begun?.place ?? '', savePlace });
    await db.deleteFrom('sync_transfers').where('peer', '=', name).execute();
    this.reputation.noteForged(name, tally.forged);
    const seconds = (performance.now() - startMs) / 1000;
    log.info({ peer: name, ...tally, per_second: Math.round(tally.taken / seconds) }, 'the transfer is done');
  }
}
