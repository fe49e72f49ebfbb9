import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { asDatabaseError } from '../db/failure.ts';
import type { Schema } from '../db/schema.ts';
import type { EventLog } from '../events/log.ts';
import type { Accepted } from './accepted.ts';
import { applyBatch, type Verdict } from './apply.ts';
import type { PipelineObserver } from './observer.ts';

/** Messages waiting to be written. A caller beyond it is told to come back: memory stays bounded. */
const MAX_QUEUED = 10_000;
/** Messages in one transaction. */
const MAX_BATCH = 500;

export interface PipelineOptions {
  readonly db: Kysely<Schema>;
  readonly events: EventLog;
  readonly schedulers: ReadonlySet<string>;
  readonly now: () => number;
  readonly observer?: PipelineObserver;
}

interface Waiting {
  readonly accepted: Accepted;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: while one batch is being written the next one gathers, so that a busy node pays for one commit per batch
 * and an idle one waits for nobody. `submit` resolves after the commit; what it acknowledged survives any crash.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #queue: Waiting[] = [];
  #draining: Promise<void> | undefined;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  readonly queuedMax = MAX_QUEUED;

  get queued(): number {
    return this.#queue.length;
  }

  /** Resolves when the message is durable (also when it already was); rejects with the reason why it is refused. */
  submit(accepted: Accepted): Promise<void> {
    if (this.#queue.length >= MAX_QUEUED) {
      return Promise.reject(new AppError('OVERLOADED', `${MAX_QUEUED} messages are waiting to be written`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ accepted, resolve, reject });
      this.#draining ??= this.#drain().finally(() => {
        this.#draining = undefined;
      });
    });
  }

  /** Resolves when nothing is waiting any more. */
  async idle(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    // Callers of the same turn of the event loop share the first batch.
    await Promise.resolve();
    while (this.#queue.length > 0) await this.#write(this.#queue.splice(0, MAX_BATCH));
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { db, schedulers, events, now } = this.#options;
    let verdicts: Verdict[];
    const startMs = performance.now();
    try {
      verdicts = await applyBatch(
        db,
        batch.map((one) => one.accepted),
        schedulers,
        now(),
      );
    } catch (error) {
      await this.#writeApart(batch, error);
      return;
    }
    const refused = verdicts.filter((verdict) => !verdict.applied).length;
    this.#options.observer?.written(batch.length, refused, (performance.now() - startMs) / 1000);
    events.wake();
    batch.forEach((one, index) => {
      const verdict = verdicts[index]!;
      if (verdict.applied) one.resolve();
      else one.reject(verdict.error);
    });
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
}
