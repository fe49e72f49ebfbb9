import type { Logger } from '@skerry/kit';
import type { Phase, Reason } from '@skerry/protocol';
import { isDiskFull } from '../../host/disk-full.ts';
import { enterPhase, type InstanceRecord, type Status, writeRecord } from './record.ts';

export interface StoredRecordOptions {
  readonly dataDir: string;
  readonly now: () => number;
  readonly log: Logger;
  /** Told of every new status, after it is on the disk where that has room. */
  readonly onStatus: (id: string, status: Status) => void;
}

/** The record of one instance, in memory and on the disk. */
export class StoredRecord {
  readonly #options: StoredRecordOptions;
  #record: InstanceRecord;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(record: InstanceRecord, options: StoredRecordOptions) {
    this.#record = record;
    this.#options = options;
  }

  get record(): InstanceRecord {
    return this.#record;
  }

  /** Changes the record. Resolves when it is on the disk. */
  update(change: Partial<InstanceRecord>): Promise<void> {
    this.#record = { ...this.#record, ...change };
    // One after the other: the last record written is the last one there was.
    this.#writing = this.#writing
      .catch(() => {})
      .then(() => (this.#isClosed ? undefined : writeRecord(this.#options.dataDir, this.#record)));
    return this.#writing;
  }

  /** Changes the record. What no later step rests on may wait until the disk has room: it is written with the next change. */
  async tryUpdate(change: Partial<InstanceRecord>): Promise<void> {
    await this.update(change).catch((error: unknown) => {
      if (!isDiskFull(error)) throw error;
      this.#options.log.warn(
        { changed: Object.keys(change) },
        'the disk is full: a change to the record is not stored yet',
      );
    });
  }

  /** States a phase, if it is news. A full disk keeps nobody from hearing it: the record is written with the next change. */
  async setPhase(phase: Phase, reason: Reason | null): Promise<void> {
    const { now, log, onStatus } = this.#options;
    const { id, status: last, restartId, phaseTimesMs: times } = this.#record;
    const isEntered = last?.phase !== phase;
    const isSame = last?.restartId === restartId && JSON.stringify(last.reason) === JSON.stringify(reason);
    if (!isEntered && isSame) return;
    const observedAtMs = Math.max(now(), (last?.observedAtMs ?? 0) + 1);
    const status = { phase, reason, observedAtMs, restartId };
    const phaseTimesMs = isEntered ? enterPhase(times, phase, observedAtMs) : times;
    await this.tryUpdate({ status, phaseTimesMs });
    if (isEntered) log.info({ phase, reason }, `the instance is ${phase}`);
    onStatus(id, status);
  }

  /** States how far preparing came. That it cannot be told is no reason to stop. */
  tellPreparing(reason: Reason): void {
    this.setPhase('preparing', reason).catch((error: unknown) =>
      this.#options.log.debug({ err: error }, 'progress could not be reported'),
    );
  }

  /** Writes what is on its way, and nothing after that. */
  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    this.#isClosed = true;
  }
}
