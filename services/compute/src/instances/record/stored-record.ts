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

/** What is prepared again after a failure says why it failed until it has gone on for so long. */
const GOES_ON_MS = 60_000;
const REASON_CHARS = 1_024;
const RETRYING = / \(retrying in [0-9]+ s\)$/;

/** An instance that is prepared. */
interface Preparation extends Disposable {
  /** States how far it came. */
  tell(reason: Reason): void;
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

  /** How long ago the guest began to boot, in milliseconds; from now on where that is ahead of the clock, which was set back since. */
  async bootAge(): Promise<number> {
    const nowMs = this.#options.now();
    if ((this.#record.bootedAtMs ?? 0) > nowMs) await this.tryUpdate({ bootedAtMs: nowMs });
    return nowMs - (this.#record.bootedAtMs ?? 0);
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

  /**
   * States that it is prepared, until it is disposed of. One that is prepared again after a failure says why it failed for as long as that
   * may be all that comes of it: the network keeps each telling for good. How far it came is not told before either.
   */
  async beginPreparing(): Promise<Preparation> {
    const { phase, reason } = this.#record.status ?? {};
    let goesOn = phase !== 'preparing' || !RETRYING.test(reason?.message ?? '');
    if (goesOn) await this.setPhase('preparing', null);
    const goOn = () => {
      goesOn = true;
      this.#tellPreparing(null);
    };
    const timer = goesOn ? undefined : setTimeout(goOn, GOES_ON_MS).unref();
    return {
      tell: (told) => {
        if (goesOn) this.#tellPreparing(told);
      },
      [Symbol.dispose]: () => clearTimeout(timer),
    };
  }

  /** States that what failed is tried again. Of a failure that goes on and on the words stay that were told first: how much is free differs each time. */
  async tellRetry({ code, message }: Reason, retryInMs: number): Promise<void> {
    const { base, status, restartId } = this.#record;
    const phase = base === null ? 'preparing' : 'starting';
    const end = ` (retrying in ${Math.ceil(retryInMs / 1_000)} s)`;
    const { phase: before, reason, restartId: restarted } = status ?? {};
    if (before === phase && restarted === restartId && reason?.code === code && reason.message.endsWith(end))
      return;
    await this.setPhase(phase, { code, message: `${message.slice(0, REASON_CHARS - end.length)}${end}` });
  }

  /** That it cannot be told is no reason to stop. */
  #tellPreparing(reason: Reason | null): void {
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
