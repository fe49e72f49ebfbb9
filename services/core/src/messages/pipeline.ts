import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Write } from '../db/copy.ts';
import { asDatabaseError } from '../db/failure.ts';
import type { Schema } from '../db/schema.ts';
import type { EventLog } from '../events/log.ts';
import type { Accepted } from './accepted.ts';
import { type Applied, applyBatch } from './apply.ts';
import type { Outcome } from './judged.ts';
import { findExpired, hasLine, putInLine, readLine, takeFromLine } from './line.ts';
import type { PipelineObserver } from './observer.ts';
import type { Kept } from './statement.ts';
import { acceptStored, type ReadContentFile } from './stored.ts';

/** Messages waiting to be written. A caller beyond it is told to come back: memory stays bounded. */
const MAX_QUEUED = 10_000;
/** Messages in one transaction. */
export const MAX_BATCH = 2_000;
/** After the database failed while nobody waits for an answer. */
const RETRY_MS = 1_000;

export interface PipelineOptions {
  readonly db: Kysely<Schema>;
  readonly write: Write<Schema>;
  readonly events: EventLog;
  /** Addresses whose allocations count. */
  readonly schedulers: ReadonlySet<string>;
  /** How long a message may lack something before it is rejected, in milliseconds. */
  readonly pendingHorizonMs: number;
  readonly readContentFile: ReadContentFile;
  readonly now: () => number;
  readonly observer?: PipelineObserver | undefined;
  /** Told of what became durable, in order. */
  readonly onKept?: ((kept: Kept) => void) | undefined;
  readonly log?: Logger | undefined;
}

/** A message of which something is uncovered says when a node first took it; from a client that is now. */
const noted = (accepted: Accepted, nowMs: number): Accepted =>
  accepted.message.form === 'envelope' || accepted.message.notedMs !== undefined
    ? accepted
    : { ...accepted, message: { ...accepted.message, notedMs: nowMs } };

interface Waiting {
  readonly accepted: Accepted;
  readonly fromPeer: boolean;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: while one batch is being written the next one gathers, so that a busy node pays for one commit per batch
 * and an idle one waits for nobody. `submit` resolves after the commit; what it acknowledged survives any crash.
 *
 * Between batches it decides again what stands in line: messages whose verdict hung on something that changed.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #queue: Waiting[] = [];
  #draining: Promise<void> | undefined;
  /** The line outlives the process, so there may be one at the start. */
  #line = true;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  readonly queuedMax = MAX_QUEUED;

  /** Messages that wait to be written. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Resolves when the message is durable (also when it already was) with what became of it. */
  submit(accepted: Accepted, { fromPeer = false } = {}): Promise<Outcome> {
    if (this.#queue.length >= MAX_QUEUED) {
      return Promise.reject(new AppError('OVERLOADED', `${MAX_QUEUED} messages are waiting to be written`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ accepted: noted(accepted, this.#options.now()), fromPeer, resolve, reject });
      this.#start();
    });
  }

  /** Something that messages hang on changed outside of the pipeline, such as `file:<hash>`. */
  async touch(keys: readonly string[]): Promise<void> {
    if (await putInLine(this.#options.db, keys, [])) this.#line = true;
    this.#start();
  }

  /** Decides again what lacked something for too long. */
  async expire(): Promise<void> {
    const { db, now } = this.#options;
    const hashes = await findExpired(db, now(), MAX_BATCH);
    if (hashes.length === 0) return;
    await putInLine(db, [], hashes);
    this.#line = true;
    this.#start();
  }

  /** Resolves when nothing is waiting and nothing stands in line any more. */
  async idle(): Promise<void> {
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
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
    });
  }

  /** The first in the queue. Two senders' copies of one hash go one after another, since each has its own verdict. */
  #takeBatch(): Waiting[] {
    const senders = new Map<string, string>();
    const isSame = ({ accepted: { message } }: Waiting) => {
      const sender = senders.get(message.itemHash) ?? message.sender;
      senders.set(message.itemHash, sender);
      return sender === message.sender;
    };
    const end = this.#queue.findIndex((one, index) => index === MAX_BATCH || !isSame(one));
    return this.#queue.splice(0, end === -1 ? MAX_BATCH : end);
  }

  async #drain(): Promise<void> {
    // Callers of the same turn of the event loop share the first batch.
    await Promise.resolve();
    while (this.#queue.length > 0 || (this.#line && !this.#closed)) {
      if (this.#queue.length > 0) await this.#write(this.#takeBatch());
      if (this.#line && !this.#closed && !(await this.#decideLine())) break;
    }
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { write, schedulers, now, pendingHorizonMs } = this.#options;
    const nowMs = now();
    const candidates = batch.map(({ accepted }) => ({ accepted, decideByMs: nowMs + pendingHorizonMs }));
    const startMs = performance.now();
    let applied: Applied;
    try {
      applied = await write((writer) => applyBatch(writer, candidates, schedulers, nowMs));
    } catch (error) {
      await this.#writeApart(batch, error);
      return;
    }
    this.#tell(applied);
    this.#tellKept(applied, batch);
    // Whoever forgets something and reads at once should not find it any more.
    if (applied.moreInLine && batch.some(({ accepted }) => accepted.message.type === 'FORGET'))
      await this.#decideLine();
    const statuses = [...applied.outcomes.values()].map(({ status }) => status);
    this.#options.observer?.written(statuses, (performance.now() - startMs) / 1000);
    for (const one of batch) one.resolve(applied.outcomes.get(one.accepted.message.itemHash)!);
  }

  #tell(applied: Applied): void {
    this.#options.events.wake();
    if (applied.moreInLine) this.#line = true;
  }

  #tellKept({ moves, fresh }: Applied, batch: readonly Waiting[]): void {
    if (moves.length === 0) return;
    const brought = batch.filter(
      ({ accepted, fromPeer }) => !fromPeer && fresh.has(accepted.message.itemHash),
    );
    this.#options.onKept?.({ moves, brought: brought.map(({ accepted }) => accepted) });
  }

  /** One message that the database refuses must not take its neighbours down. */
  async #writeApart(batch: readonly Waiting[], error: unknown): Promise<void> {
    const failure = asDatabaseError(error);
    if (batch.length === 1 || failure) {
      for (const one of batch) one.reject(failure ?? error);
      return;
    }
    for (const one of batch) await this.#write([one]);
  }

  /** Decides the first in line. False: the database is away, and the line waits. */
  async #decideLine(limit = MAX_BATCH): Promise<boolean> {
    const { db, write, schedulers, now, readContentFile } = this.#options;
    let hashes: readonly string[] = [];
    try {
      if (!(await hasLine(db))) {
        this.#line = false;
        return true;
      }
      const stored = await readLine(db, limit);
      hashes = stored.hashes;
      const accepted = await Promise.all(stored.messages.map((row) => acceptStored(row, readContentFile)));
      const candidates = accepted.map((one, index) => ({
        accepted: one,
        decideByMs: stored.messages[index]!.decide_by_ms,
      }));
      const applied = await write(async (writer) => {
        await takeFromLine(writer.trx, hashes);
        return applyBatch(writer, candidates, schedulers, now());
      });
      this.#tell(applied);
      this.#tellKept(applied, []);
      return true;
    } catch (error) {
      if (!asDatabaseError(error) && hashes.length > 0) return this.#decideApart(hashes, error);
      return this.#decideLater();
    }
  }

  #decideLater(): false {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#start(), RETRY_MS).unref();
    return false;
  }

  /** One message that cannot be decided must not stop the line; by itself it keeps the verdict that it had. */
  async #decideApart(hashes: readonly string[], error: unknown): Promise<boolean> {
    if (hashes.length > 1) return this.#decideLine(1);
    this.#options.log?.error({ err: error, item_hash: hashes[0] }, 'a message could not be decided again');
    try {
      await takeFromLine(this.#options.db, hashes);
      return true;
    } catch {
      return this.#decideLater();
    }
  }
}
