import type { Logger } from '@skerry/kit';
import type { InstanceRecord } from './record/record.ts';
import type { InstanceWorker } from './worker/worker.ts';

/** How long an instance that was busy at its time is left alone. */
const RETRY_MS = 30_000;
/** Timers go by uptime, a time is one of the clock: it is looked at so often, so that a clock that is set moves it no further. */
const LOOK_MS = 60_000;

/** Stops instances at the times that their owners chose. A time is part of the record: it holds for the next process, too. */
export class Expiries {
  readonly #now: () => number;
  readonly #log: Logger;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor({ now, log }: { readonly now: () => number; readonly log: Logger }) {
    this.#now = now;
    this.#log = log;
  }

  /** @param atMs milliseconds since 1970, in place of an earlier one */
  async set(worker: InstanceWorker, atMs: number): Promise<void> {
    await worker.runTask((instance) => instance.update({ expiresAtMs: atMs }));
    this.resume(worker);
  }

  /** Goes by what the record says. */
  resume(worker: InstanceWorker): void {
    const { id, expiresAtMs } = worker.record;
    if (expiresAtMs === undefined) return;
    this.#arm(id, worker, Math.min(LOOK_MS, Math.max(0, expiresAtMs - this.#now())));
  }

  #arm(id: string, worker: InstanceWorker, delayMs: number): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.set(id, setTimeout(() => void this.#expire(id, worker), delayMs).unref());
  }

  async #expire(id: string, worker: InstanceWorker): Promise<void> {
    this.#timers.delete(id);
    if (worker.isDone) return;
    if (!this.#isDue(worker.record)) return this.resume(worker);
    try {
      await worker.runTask(async (instance) => {
        // A later time may have been chosen meanwhile, or the clock set back.
        if (!this.#isDue(instance.record)) return;
        await instance.stop();
        await instance.update({ isPoweredOff: true, isOwnerStopped: true, expiresAtMs: undefined });
      });
      this.resume(worker);
    } catch (error) {
      if (worker.isDone) return;
      this.#log.warn({ err: error, instance: id }, 'an instance could not be stopped at its time; retrying');
      this.#arm(id, worker, RETRY_MS);
    }
  }

  #isDue({ expiresAtMs }: InstanceRecord): boolean {
    return expiresAtMs !== undefined && expiresAtMs <= this.#now();
  }
}
