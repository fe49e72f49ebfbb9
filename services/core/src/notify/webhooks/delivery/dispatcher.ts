import { Failures, type Logger, within } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { Schema } from '../../../store/schema.ts';
import type { Endpoint, EndpointBook } from '../endpoints.ts';
import { attemptDelivery } from './attempt.ts';
import { Bodies } from './bodies.ts';
import { type Claimed, claimDeliveries, findDueWebhooks, giveBackDeliveries } from './deliveries.ts';
import {
  claimLimit,
  createLane,
  FLIGHTS_MAX,
  isIdle,
  isOpen,
  isSlow,
  type Lane,
  QUICK_MAX,
  roomOf,
  SLOW_MAX,
  slowAfterMs,
} from './lane.ts';
import type { DeliveryCapacity } from './planner.ts';
import { type Attempted, cooldownMs, decideNext, heldForMs } from './schedule.ts';
import type { Sender } from './send.ts';
import type { Settler } from './settler.ts';

/** How often holds, retries and slow attempts are looked at. */
const TICK_MS = 100;
/** How often the table is asked what is due: what others left, and leases that ended. */
const SWEEP_MS = 2_000;
/** Endpoints that are claimed for at once. */
const CLAIM_ENDPOINTS_MAX = 200;
/** Outcomes that are not written yet: beyond it nothing new begins. */
const UNSETTLED_MAX = 5_000;
/** What is under way when the node stops may take this long to end. */
const CLOSE_GRACE_MS = 2_000;

const FAILED_REST_MAX_MS = 10_000;
const DATABASE_FAILED = 'due deliveries could not be read or claimed; retrying';

export interface DispatchObserver {
  attempted(outcome: string, seconds: number): void;
  /** The first attempt of a delivery began this long after its event. */
  begun(seconds: number): void;
}

export interface DispatcherOptions {
  readonly db: Kysely<Schema>;
  readonly book: EndpointBook;
  readonly sender: Sender;
  readonly settler: Settler;
  readonly observer?: DispatchObserver | undefined;
  readonly now: () => number;
  readonly log: Logger;
}

interface Flight {
  readonly lane: Lane;
  readonly startMs: number;
  isQuick: boolean;
  ended: Promise<void>;
}

/**
 * Delivers what is due. Each endpoint has a lane: so many attempts at once, one while it fails or is slow. Endpoints that
 * answer share room that the others cannot take.
 */
export class Dispatcher implements DeliveryCapacity {
  readonly #options: DispatcherOptions;
  readonly #bodies: Bodies;
  readonly #lanes = new Map<number, Lane>();
  /** Lanes that may have something to start, the longest waiting first; quick and slow ones apart. */
  readonly #runnable = { quick: new Set<Lane>(), slow: new Set<Lane>() };
  readonly #flights = new Set<Flight>();
  /** Claimed, and too late for an attempt before the lease ends: to be given back before more is claimed. */
  readonly #late: Claimed[] = [];
  readonly leaseMs: number;
  #quick = 0;
  #claiming: Promise<void> | undefined;
  /** By this machine's uptime: the clock may be set back. */
  #sweptMs = Number.NEGATIVE_INFINITY;
  /** Claims and looks at what is due that failed; nothing is asked of the database before `#restUntilMs`. */
  readonly #failures: Failures;
  #restUntilMs = 0;
  #tick: NodeJS.Timeout | undefined;
  #closed = false;
  #abandoned = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#bodies = new Bodies(options.db);
    this.#failures = new Failures({ log: options.log, what: DATABASE_FAILED, maxMs: FAILED_REST_MAX_MS });
    this.leaseMs = 2 * options.sender.timeoutMs;
  }

  get inFlight(): number {
    return this.#flights.size;
  }

  start(): void {
    this.#tick = setInterval(() => this.#look(), TICK_MS);
    this.#look();
  }

  /** These have something new that is due. */
  notify(webhooks: Iterable<number>): void {
    for (const webhook of webhooks) {
      const lane = this.#laneOf(webhook);
      lane.isReady = true;
      this.#enqueue(lane);
    }
    this.#pump();
  }

  roomFor(webhook: number): number {
    const { settler, book } = this.#options;
    const isBusy = this.#closed || settler.unsettled >= UNSETTLED_MAX;
    const endpoint = isBusy ? undefined : book.find(webhook);
    return endpoint ? roomOf(this.#laneOf(webhook), endpoint.concurrency, performance.now()) : 0;
  }

  /** What was planned as taken, now that it is committed. */
  take(claimed: readonly Claimed[]): void {
    for (const one of claimed) {
      const lane = this.#laneOf(one.webhook);
      lane.queue.push(one);
      this.#enqueue(lane);
    }
    this.#pump();
  }

  /** Begins nothing more and waits a little for what is under way; the rest is given back by its leases. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#tick);
    await this.#claiming;
    const ended = Promise.all([...this.#flights].map((flight) => flight.ended));
    await within(CLOSE_GRACE_MS, ended, []);
    this.#abandoned = true;
    await this.#options.settler.close();
  }

  #enqueue(lane: Lane): void {
    const { quick, slow } = this.#runnable;
    (isSlow(lane) ? quick : slow).delete(lane);
    (isSlow(lane) ? slow : quick).add(lane);
  }

  #dequeue(lane: Lane): void {
    this.#runnable.quick.delete(lane);
    this.#runnable.slow.delete(lane);
  }

  /** Its owner paused or deleted it, or it is disabled. */
  #reset(lane: Lane): void {
    Object.assign(lane, { isReady: false, failures: 0, holdUntilMs: 0, nextDueMs: Number.POSITIVE_INFINITY });
    lane.queue.length = 0;
    this.#dequeue(lane);
  }

  #laneOf(webhook: number): Lane {
    let lane = this.#lanes.get(webhook);
    if (!lane) {
      const endpoint = this.#options.book.find(webhook);
      lane = createLane(webhook);
      const heldMs = heldForMs(endpoint?.holdUntilMs ?? 0, this.#options.now());
      if (heldMs > 0) lane.holdUntilMs = performance.now() + heldMs;
      // What failed before the last restart is tried one at a time.
      lane.failures = endpoint?.failingSinceMs == null ? 0 : 1;
      this.#lanes.set(webhook, lane);
    }
    return lane;
  }

  get #rests(): boolean {
    return performance.now() < this.#restUntilMs;
  }

  #rest(error: unknown): void {
    if (!this.#closed) this.#restUntilMs = performance.now() + this.#failures.note(error);
  }

  #hasRoom(isQuick: boolean): boolean {
    return isQuick ? this.#quick < QUICK_MAX : this.#flights.size - this.#quick < SLOW_MAX;
  }

  /** Attempts that take long give back the room of the quick ones. */
  #moveSlow(): void {
    if (this.#flights.size >= FLIGHTS_MAX) return;
    const isPressed = !this.#hasRoom(true);
    const atMs = performance.now();
    for (const flight of this.#flights) {
      if (!flight.isQuick || atMs - flight.startMs < slowAfterMs(flight.lane, isPressed)) continue;
      flight.isQuick = false;
      flight.lane.stuck++;
      this.#quick--;
    }
  }

  #look(): void {
    const nowMs = this.#options.now();
    this.#moveSlow();
    for (const lane of this.#lanes.values()) {
      if (lane.nextDueMs <= nowMs) {
        lane.nextDueMs = Number.POSITIVE_INFINITY;
        lane.isReady = true;
      }
      if (this.#options.book.find(lane.webhook)?.status !== 'active') this.#reset(lane);
      if (lane.isReady || lane.queue.length > 0) this.#enqueue(lane);
      else if (isIdle(lane)) this.#lanes.delete(lane.webhook);
    }
    if (performance.now() - this.#sweptMs >= SWEEP_MS && !this.#claiming && !this.#rests) {
      this.#sweptMs = performance.now();
      this.#claiming = this.#sweep().finally(() => {
        this.#claiming = undefined;
        this.#pump();
      });
    }
    this.#pump();
  }

  async #sweep(): Promise<void> {
    const { db, now } = this.#options;
    try {
      for (const webhook of await findDueWebhooks(db, now())) {
        const lane = this.#laneOf(webhook);
        lane.isReady = true;
        this.#enqueue(lane);
      }
    } catch (error) {
      this.#rest(error);
    }
  }

  #pump(): void {
    if (this.#closed || this.#options.settler.unsettled >= UNSETTLED_MAX) return;
    this.#startAll();
    if (this.#claiming || this.#rests) return;
    const wants = this.#listWants();
    if (wants.length === 0) return;
    this.#claiming = this.#claim(wants).then((isDone) => {
      this.#claiming = undefined;
      if (isDone) this.#pump();
    });
  }

  #startAll(): void {
    for (const lane of this.#runnable.quick) {
      if (!this.#hasRoom(true)) break;
      this.#startNext(lane);
    }
    for (const lane of this.#runnable.slow) {
      if (!this.#hasRoom(false)) break;
      this.#startNext(lane);
    }
  }

  /** Starts one attempt of a lane, which then stands in line behind the others. */
  #startNext(lane: Lane): void {
    const { book, now, sender } = this.#options;
    const endpoint = book.find(lane.webhook);
    if (endpoint?.status !== 'active') {
      this.#reset(lane);
      return;
    }
    if (!isOpen(lane, endpoint.concurrency, performance.now())) {
      // It comes back when something of it ends, or at the next look.
      this.#dequeue(lane);
      return;
    }
    const claimed = lane.queue.shift();
    if (claimed) {
      this.#dequeue(lane);
      if (claimed.leaseEndMs - now() > sender.timeoutMs) this.#begin(lane, endpoint, claimed);
      else {
        this.#late.push(claimed);
        lane.isReady = true;
      }
      // A set that is walked through gives what is added again once more.
      this.#enqueue(lane);
    } else if (!lane.isReady) this.#dequeue(lane);
  }

  #listWants() {
    const { book } = this.#options;
    const wants: { webhook: number; limit: number }[] = [];
    for (const isQuick of [true, false]) {
      if (!this.#hasRoom(isQuick)) continue;
      for (const lane of isQuick ? this.#runnable.quick : this.#runnable.slow) {
        const endpoint = book.find(lane.webhook);
        const limit = endpoint ? claimLimit(lane, endpoint.concurrency, performance.now()) : 0;
        if (limit > 0) wants.push({ webhook: lane.webhook, limit });
        if (wants.length >= CLAIM_ENDPOINTS_MAX) return wants;
      }
    }
    return wants;
  }

  async #claim(wants: readonly { webhook: number; limit: number }[]): Promise<boolean> {
    const { db, now } = this.#options;
    // What is planned while this runs may be missed by it, and is asked for again.
    for (const { webhook } of wants)
      Object.assign(this.#laneOf(webhook), { isReady: false, isClaiming: true });
    try {
      const late = [...this.#late];
      await giveBackDeliveries(db, late, now());
      this.#late.splice(0, late.length);
      const claimed = await claimDeliveries(db, wants, now(), this.leaseMs);
      await this.#bodies.fill(claimed);
      for (const one of claimed) this.#laneOf(one.webhook).queue.push(one);
      const counts = new Map<number, number>();
      for (const one of claimed) counts.set(one.webhook, (counts.get(one.webhook) ?? 0) + 1);
      for (const { webhook, limit } of wants) {
        const lane = this.#laneOf(webhook);
        if ((counts.get(webhook) ?? 0) >= limit) lane.isReady = true;
        if (lane.isReady || lane.queue.length > 0) this.#enqueue(lane);
        else this.#dequeue(lane);
      }
      this.#failures.clear();
      return true;
    } catch (error) {
      for (const { webhook } of wants) this.#laneOf(webhook).isReady = true;
      this.#rest(error);
      return false;
    } finally {
      for (const { webhook } of wants) this.#laneOf(webhook).isClaiming = false;
    }
  }

  #begin(lane: Lane, endpoint: Endpoint, claimed: Claimed): void {
    const isQuick = !isSlow(lane);
    const flight: Flight = { lane, startMs: performance.now(), isQuick, ended: Promise.resolve() };
    this.#flights.add(flight);
    lane.inFlight++;
    if (isQuick) this.#quick++;
    flight.ended = this.#fly(flight, endpoint, claimed);
  }

  async #fly(flight: Flight, endpoint: Endpoint, claimed: Claimed): Promise<void> {
    const { lane, isQuick: wasQuick } = flight;
    try {
      this.#ended(lane, endpoint, claimed, await this.#attempt(endpoint, claimed));
    } catch (error) {
      this.#options.log.error({ err: error }, 'an attempt failed unexpectedly');
    } finally {
      this.#flights.delete(flight);
      lane.inFlight--;
      if (flight.isQuick) this.#quick--;
      else if (wasQuick) lane.stuck--;
      this.#enqueue(lane);
      this.#pump();
    }
  }

  #attempt(endpoint: Endpoint, claimed: Claimed): Promise<Attempted> {
    const { sender, now, observer } = this.#options;
    const nowMs = now();
    if (claimed.body && claimed.attempts === 0) observer?.begun((nowMs - claimed.body.timeMs) / 1000);
    return attemptDelivery(sender, endpoint, claimed, nowMs);
  }

  #ended(lane: Lane, endpoint: Endpoint, claimed: Claimed, attempted: Attempted): void {
    if (this.#abandoned) return;
    const { settler, now, observer } = this.#options;
    const nowMs = now();
    observer?.attempted(attempted.ok ? 'delivered' : attempted.failure.code, attempted.durationMs / 1000);
    const next = decideNext(attempted, claimed.attempts + 1, nowMs, Math.random());
    lane.isProven = attempted.ok;
    if (attempted.ok) {
      lane.failures = 0;
      lane.holdUntilMs = 0;
    } else {
      lane.failures++;
      const holdMs = Math.max(cooldownMs(lane.failures, Math.random()), attempted.failure.retryAfterMs ?? 0);
      lane.holdUntilMs = Math.max(lane.holdUntilMs, performance.now() + holdMs);
      if (next.state === 'waiting') lane.nextDueMs = Math.min(lane.nextDueMs, next.atMs);
    }
    settler.add(endpoint, claimed, attempted, next);
  }
}
