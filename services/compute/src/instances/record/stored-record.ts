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
    const { log, onStatus } = this.#options;
    const { id, status: last, restartId, phaseTimesMs: times } = this.#record;
    const isEntered = last?.phase !== phase;
    const isSame = last?.restartId === restartId && JSON.stringify(last.reason) === JSON.stringify(reason);
    if (!isEntered && isSame) return;
    const observedAtMs = this.#nextMs();
    const status = { phase, reason, observedAtMs, restartId };
    const phaseTimesMs = isEntered ? enterPhase(times, phase, observedAtMs) : times;
    await this.tryUpdate({ status, phaseTimesMs });
    if (isEntered) log.info({ phase, reason }, `the instance is ${phase}`);
    onStatus(id, status);
  }

  /** After all that was told of the instance, though the clock was set back since. */
  #nextMs(): number {
    const { status, phaseTimesMs } = this.#record;
    return Math.max(this.#options.now(), (status?.observedAtMs ?? phaseTimesMs.scheduled ?? 0) + 1);
  }

  /** Tells the status again. One that a core node took is dated anew: it counted for less than something that was told before it. */
  async tellAgain(): Promise<void> {
    const { id, status, publishedAtMs } = this.#record;
    if (!status) return;
    const isTaken = status.observedAtMs <= publishedAtMs;
    const again = isTaken ? { ...status, observedAtMs: this.#nextMs() } : status;
    if (isTaken) await this.tryUpdate({ status: again });
    this.#options.onStatus(id, again);
  }

  /** States how far preparing came. That it cannot be told is no reason to stop. */
  tellPreparing(reason: Reason): void {
    this.setPhase('preparing', reason).catch((error: unknown) =>
      this.#options.log.debug({ err: error }, 'progress could not be reported'),
    );
  }

  /** Writes what is on its way, then does the last thing with the directory, and writes nothing after that, unless it fails. */
  close<T>(last: () => Promise<T>): Promise<T> {
    const closing = this.#writing
      .catch(() => {})
      .then(async () => {
        const result = await last();
        this.#isClosed = true;
        return result;
      });
    this.#writing = closing.then(
      () => {},
      () => {},
    );
    return closing;
  }
}
