import { setTimeout as delay } from 'node:timers/promises';
import type { Write } from '@skerry/database';
import { asDatabaseError, BOUNDLESS, type DiskReserve, isTooLong } from '@skerry/database';
import { Failures, type Logger, Rests } from '@skerry/kit';
import type { AppError } from '@skerry/protocol';
import type { Kysely, Transaction } from 'kysely';
import type { EventLog } from '../../notify/events/log.ts';
import type { ReadContentFile } from '../../store/content-reader.ts';
import type { Change } from '../../store/dependency-keys.ts';
import type { Schema } from '../../store/schema.ts';
import type { Accepted, Verdict } from '../accepted.ts';
import { findKind } from '../kinds.ts';
import { type Applied, applyAgain, type ReadInForce, writeBatch } from './apply-batch.ts';
import type { Weight } from './decided.ts';
import { type Left, LookAhead } from './look-ahead.ts';
import type { PipelineObserver } from './observer.ts';
import { MAX_BATCH, MAX_QUEUED, Queue, type Waiting } from './queue.ts';
import {
  findExpired,
  fittingRows,
  nextLineLimit,
  putInLineAlone,
  putRestInLine,
  RestTurns,
  readContents,
  readLine,
  takeFromLine,
} from './reconsider-queue.ts';
import type { Committed } from './statement.ts';
import { type Turn, writeInTurn } from './turn.ts';

/** A batch that fails is tried again in so many parts, and each that fails again: few steps lead to one message of thousands. */
const PARTS = 8;
/**
 * After a batch of several messages the next one waits so long for more of them, unless so many wait already. A commit costs
 * more than a message does: in a crowd half the commits leave the processor to those who read.
 */
const GATHER_MS = 10;
const GATHERED_ENOUGH = 64;
/** While the database fails and nobody waits for an answer, the line rests for so long at most and at least. */
const RETRY_MAX_MS = 10_000;
const RETRY_MIN_MS = 1_000;
/** Messages in line whose content could not be read rest by themselves; with so many the whole line rests. */
const UNREADABLE = { knownMax: 10_000, maxMs: 30_000 } as const;
/** How often it is looked whether one of them is due. */
const UNREADABLE_LOOK_MS = 1_000;

export interface PipelineOptions {
  readonly db: Kysely<Schema>;
  readonly write: Write<Schema>;
  readonly events: EventLog;
  /** Addresses whose allocations count. */
  readonly schedulers: ReadonlySet<string>;
  /** How long a message may lack something before it is rejected, in milliseconds. */
  readonly pendingHorizonMs: number;
  readonly readContentFile: ReadContentFile;
  readonly reserve?: DiskReserve | undefined;
  readonly now: () => number;
  /** Milliseconds since whenever; never set. */
  readonly uptime?: (() => number) | undefined;
  readonly observer?: PipelineObserver | undefined;
  /** Told of what became durable, in order. */
  readonly onCommitted?: ((committed: Committed) => void) | undefined;
  readonly log?: Logger | undefined;
}

interface SubmitOptions {
  /** Other nodes hear of it from this one, where it is new. */
  readonly isPassedOn?: boolean;
  /** Of what is said of it that nothing covers. Left out: it counts. */
  readonly weight?: Weight;
}

/**
 * Group commit: while one batch is being written, and a moment longer where it is of several messages, the next one gathers,
 * so that a busy node pays for one commit per batch and an idle one waits for nobody. `submit` resolves after the commit;
 * what it acknowledged survives any crash.
 *
 * Between batches it decides again what stands in line: messages whose verdict hung on something that changed.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #queue = new Queue();
  #lastEvent = 0;
  #draining: Promise<void> | undefined;
  /** The line outlives the process, so there may be one at the start. */
  #line = true;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;
  /** The batches that are being written: a second one while the first one is being committed. */
  readonly #writing = new Set<{ readonly sinceMs: number }>();
  readonly #reserve: DiskReserve;
  readonly #failures: Failures | undefined;
  /** Messages of the line that are decided at once: fewer after a failure, until it is found whose it is. */
  #lineLimit = MAX_BATCH;
  readonly #restTurns = new RestTurns();
  /** Nothing is asked of the line before, by whoever writes. */
  #lineRestsUntilMs = 0;
  /** Messages in line whose content cannot be read now, or that take too long. */
  readonly #resting: Rests;
  readonly #lookAhead = new LookAhead();

  constructor(options: PipelineOptions) {
    this.#options = options;
    const { log, uptime, reserve = BOUNDLESS } = options;
    this.#reserve = reserve;
    const what = 'the reconsider queue is stalled; retrying';
    this.#failures = log && new Failures({ log, what, maxMs: RETRY_MAX_MS });
    this.#resting = new Rests({ now: uptime, ...UNREADABLE });
  }

  /** The number of the last event as of the last batch; 0 before the first. */
  get lastEvent(): number {
    return this.#lastEvent;
  }

  readonly queuedMax = MAX_QUEUED;

  /** How long the batch that is being written has taken until now, in milliseconds; 0 where none is. */
  get writingMs(): number {
    const [first] = this.#writing;
    return first ? performance.now() - first.sinceMs : 0;
  }

  /** Messages that wait to be written. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Throws OVERLOADED where so much waits to be written that nothing more should be made of what can be sent again. */
  checkRoom(): void {
    this.#queue.checkRoom();
  }

  /** Resolves when the message is durable, or already was, with what became of it. Throws OVERLOADED, STORAGE_FULL, DATABASE_UNAVAILABLE. */
  submit(
    accepted: Accepted,
    { isPassedOn = false, weight = 'counts' }: SubmitOptions = {},
  ): Promise<Verdict> {
    return new Promise((resolve, reject) => this.put({ accepted, isPassedOn, weight, resolve, reject }));
  }

  /** The same, for who brings thousands and needs no promise for each. Throws OVERLOADED, STORAGE_FULL. */
  put(one: Waiting): void {
    this.#reserve.take();
    this.#queue.push(one);
    this.#start();
  }

  /** Something that messages hang on changes outside of the pipeline, such as a file that came (store/dependency-keys.ts). */
  async touch(keys: readonly string[], change?: Change): Promise<void> {
    if (await putInLineAlone(this.#options.write, keys, [], change)) this.#line = true;
    this.#start();
  }

  /**
   * Derives again what follows from messages in force, which are read once nobody else writes.
   * @param within is written in the same transaction
   */
  async derive(read: ReadInForce, within: (trx: Transaction<Schema>) => Promise<void>): Promise<void> {
    const { write, schedulers, now } = this.#options;
    const moreInLine = await write(async (writer) => {
      const more = await applyAgain(writer, read, schedulers, now());
      await within(writer.trx);
      return more;
    });
    this.#options.events.wake();
    this.resume(moreInLine);
  }

  /** Something stands in line, which was put there outside of the pipeline. */
  resume(isInLine = true): void {
    if (!isInLine) return;
    this.#line = true;
    this.#start();
  }

  /** Decides again what lacked something for too long. */
  async expire(): Promise<void> {
    const { db, write, now } = this.#options;
    const hashes = await findExpired(db, now(), MAX_BATCH);
    if (hashes.length === 0) return;
    await putInLineAlone(write, [], hashes);
    this.resume();
  }

  /** Resolves when nothing is waiting and nothing stands in line any more. */
  async idle(): Promise<void> {
    this.#lineRestsUntilMs = 0;
    this.#start();
    await this.#draining;
  }

  /** Finishes what is waiting. The line is left for the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    await this.#draining;
  }

  #start(): void {
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    // Callers of the same turn of the event loop share the first batch.
    await Promise.resolve();
    let last = 0;
    try {
      while (this.#queue.length > 0 || this.#mayDecide) {
        const { length } = this.#queue;
        if (last > 1 && length > 0 && length < GATHERED_ENOUGH) await delay(GATHER_MS);
        const take = (isNext: boolean) => {
          const isCrowd = this.#queue.length >= GATHERED_ENOUGH && !this.#mayDecide;
          return isNext && !isCrowd ? [] : this.#queue.takeBatch();
        };
        last = await writeInTurn(take, () => this.#queue.whenMany(), this.#write);
        if (this.#mayDecide && !(await this.#decideLine()) && this.#queue.length === 0) break;
      }
    } finally {
      // In the step that saw nothing left: whoever comes after it begins anew.
      this.#draining = undefined;
    }
  }

  get #mayDecide(): boolean {
    return this.#line && !this.#closed && performance.now() >= this.#lineRestsUntilMs;
  }

  /** Looks at the line again after a while, whoever writes meanwhile. */
  #restLine(waitMs: number): void {
    this.#lineRestsUntilMs = performance.now() + waitMs;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#lineRestsUntilMs = 0;
      this.#start();
    }, waitMs).unref();
  }

  /** What could not be read is looked at again; the rest of the line does not wait for it. */
  #lookLater(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.resume(), UNREADABLE_LOOK_MS).unref();
  }

  /**
   * @param turn the batch before is told of before this one, since it is committed before
   * @returns why the database takes nothing more at the moment; undefined where it does
   */
  readonly #write = async (
    batch: readonly Waiting[],
    turn: Turn<Left> = {},
  ): Promise<AppError | undefined> => {
    const { write, schedulers, now, pendingHorizonMs } = this.#options;
    const nowMs = now();
    const decideByMs = nowMs + pendingHorizonMs;
    const candidates = batch.map(({ accepted, weight }) => ({ accepted, decideByMs, weight }));
    const writing = { sinceMs: performance.now() };
    this.#writing.add(writing);
    let applied: Applied;
    const writes = writeBatch(write, candidates, schedulers, nowMs, this.#lookAhead.follow(turn));
    try {
      applied = await writes.finally(() => this.#writing.delete(writing));
    } catch (error) {
      await turn.before;
      return this.#lookAhead.hasMissedTurn(turn, error) ? this.#write(batch) : this.#writeApart(batch, error);
    }
    await turn.before;
    this.#tell(applied);
    this.#tellCommitted(applied, batch);
    if (
      applied.moreInLine &&
      this.#mayDecide &&
      batch.some(({ accepted }) => findKind(accepted.message.type)?.isAnsweredAfterLine)
    )
      await this.#decideLine();
    const statuses = [...applied.verdicts.values()].map(({ status }) => status);
    this.#options.observer?.written(statuses, (performance.now() - writing.sinceMs) / 1000);
    for (const one of batch) one.resolve(applied.verdicts.get(one.accepted.message.itemHash)!);
    return undefined;
  };

  #tell(applied: Applied): void {
    this.#lastEvent = Math.max(this.#lastEvent, applied.lastEvent);
    this.#options.events.wake();
    if (applied.moreInLine) this.#line = true;
  }

  #tellCommitted({ moves, row, fresh }: Applied, batch: readonly Waiting[]): void {
    if (!row) return;
    const own = batch.filter(
      ({ accepted, isPassedOn }) => isPassedOn && fresh.has(accepted.message.itemHash),
    );
    this.#options.onCommitted?.({ moves, row, toPassOn: own.map(({ accepted }) => accepted) });
  }

  /**
   * One message that the database refuses, or that takes it too long, must not take its neighbours down. What fails because
   * the database is away fails as a whole.
   */
  async #writeApart(batch: readonly Waiting[], error: unknown): Promise<AppError | undefined> {
    const failure = asDatabaseError(error);
    const away = isTooLong(error) ? undefined : failure;
    if (batch.length === 1 || away) {
      for (const one of batch) one.reject(failure ?? error);
      return away;
    }
    const size = Math.ceil(batch.length / PARTS);
    for (let end = size; end - size < batch.length; end += size) {
      const refused = await this.#write(batch.slice(end - size, end));
      if (refused) for (const one of batch.slice(end)) one.reject(refused);
      if (refused) return refused;
    }
    return undefined;
  }

  /** Decides the first in line. False: the database is away, and the line waits. */
  async #decideLine(): Promise<boolean> {
    const { db, write, schedulers, now } = this.#options;
    let hashes: readonly string[] = [];
    try {
      const resting = this.#resting.list();
      if (resting.length >= UNREADABLE.knownMax || !this.#reserve.hasRoom) {
        this.#restLine(UNREADABLE_LOOK_MS);
        return false;
      }
      await this.#restTurns.take(db, write);
      // Whoever puts something in line while it is read says so again.
      this.#line = false;
      const stored = await readLine(db, this.#lineLimit, resting);
      hashes = stored.hashes;
      if (hashes.length === 0) return await this.#endLine(resting.length > 0);
      this.#line = true;
      const { readContentFile, pendingHorizonMs: horizonMs } = this.#options;
      const reading = { readContentFile, nowMs: now(), horizonMs };
      const read = await readContents(stored.messages, reading, (hash, error) => {
        this.#resting.note(hash);
        this.#options.log?.debug({ err: error, item_hash: hash }, 'a content cannot be read at the moment');
      });
      const candidates = fittingRows(read);
      const left = new Set(read.slice(candidates.length).map(({ accepted }) => accepted.message.itemHash));
      const unread = new Set(this.#resting.list());
      hashes = stored.hashes.filter((hash) => !unread.has(hash) && !left.has(hash));
      if (hashes.length === 0) return true;
      const startMs = performance.now();
      const applied = await writeBatch(write, candidates, schedulers, now(), { fromLine: hashes });
      for (const hash of hashes) this.#resting.end(hash);
      this.#restTurns.note(hashes.length);
      this.#tell(applied);
      this.#tellCommitted(applied, []);
      const limit = left.size > 0 ? hashes.length : this.#lineLimit;
      this.#lineLimit = nextLineLimit(limit, hashes.length, performance.now() - startMs);
      this.#failures?.clear();
      return true;
    } catch (error) {
      this.#line = true;
      if ((asDatabaseError(error) && !isTooLong(error)) || hashes.length === 0) {
        this.#restLine(this.#failures?.note(error) ?? RETRY_MIN_MS);
        return false;
      }
      if (hashes.length > 1) {
        this.#lineLimit = Math.ceil(hashes.length / PARTS);
        return this.#decideLine();
      }
      return isTooLong(error) ? this.#letRest(hashes[0]!, error) : this.#leaveLine(hashes, error);
    }
  }

  /** Nobody is left in line but those that rest, unless more is to be put there. */
  async #endLine(isResting: boolean): Promise<true> {
    const { db, write } = this.#options;
    if (await putRestInLine(db, write)) {
      this.#line = true;
      return true;
    }
    this.#failures?.clear();
    if (isResting) this.#lookLater();
    return true;
  }

  /** One message that takes the database too long must not stop the line; it is tried again, since others may take the time now. */
  #letRest(hash: string, error: unknown): true {
    this.#resting.note(hash);
    this.#options.log?.error({ err: error, item_hash: hash }, 'a message takes too long to be decided again');
    return true;
  }

  /** One message that cannot be decided must not stop the line; by itself it keeps the verdict that it had. */
  async #leaveLine(hashes: readonly string[], error: unknown): Promise<boolean> {
    this.#options.log?.error({ err: error, item_hash: hashes[0] }, 'a message could not be reconsidered');
    try {
      await takeFromLine(this.#options.db, hashes);
      return true;
    } catch (failure) {
      this.#restLine(this.#failures?.note(failure) ?? RETRY_MIN_MS);
      return false;
    }
  }
}
