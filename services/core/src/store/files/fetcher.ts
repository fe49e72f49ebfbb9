import { addAbortListener } from 'node:events';
import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { backoffMs, type Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../schema.ts';
import { AskedSource, type Asking, type Want } from './fetching/asked-source.ts';
import { type Attempt, minutesOf, newAttempt, type Trying, wantOf } from './fetching/attempt.ts';
import { listLacking } from './fetching/lacking.ts';
import { watchPace } from './fetching/pace.ts';
import { type Runner, race } from './fetching/race.ts';
import type { FileSource, Opened } from './fetching/source.ts';
import { isSurveyed, Survey, type SurveyOptions } from './fetching/survey.ts';
import type { Files } from './files.ts';
import type { LostFiles } from './lost.ts';
import type { MissedFiles } from './missed.ts';
import { listUnlacked } from './wanted.ts';

/** Files that are fetched at the same time. One in so many is kept for what pending messages lack. */
const PARALLEL = 8;
const KEPT_PART = 4;
/** Of them, at most one in so many is one source's, where there are others: one that sends slowly holds up none of what others have. */
const SOURCE_PART = 2;
const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 300_000;
/** So long a try waits for sources that could not be asked yet. Then those that were asked may be asked again. */
const PUT_OFF_MS = 60_000;
/**
 * Where another source could be asked, all that comes of one at the same time is this much a minute together, in bytes (17 kB/s). A file that
 * was in vain before has more minutes to show it (attempt.ts).
 */
const LEAST_BYTES = 1024 * 1024;
/** Wrong files of sources that are remembered. */
const BLAMED_MAX = 10_000;

export interface FetchCounts {
  readonly fetched: number;
  readonly failed: number;
  readonly elapsedMs: number;
}

export interface FetcherOptions {
  readonly db: Kysely<Schema>;
  readonly files: Files;
  readonly sources: readonly FileSource[];
  /** Looked into before any of the sources is asked: what is here already costs nobody anything. */
  readonly own?: Pick<FileSource, 'open'>;
  readonly now: () => number;
  readonly random?: () => number;
  readonly reserve?: Pick<DiskReserve, 'hasRoom'>;
  /** What is to be fetched again, after what messages wait for. */
  readonly lost?: Pick<LostFiles, 'names' | 'note' | 'sizeOf'>;
  /** What messages were rejected for, after that. */
  readonly missed?: Pick<MissedFiles, 'names' | 'note' | 'wake'>;
  /** What messages were rejected for, once more: of each source that can be asked for many at once, in passes of its own. */
  readonly swept?: () => SurveyOptions['swept'];
  /** Files that are fetched at the same time. */
  readonly parallel?: number;
  readonly log: Logger;
}

/** A source that is asked for a file. */
interface Asked {
  readonly one: AskedSource;
  readonly asking: Asking;
  readonly signal: AbortSignal;
}

const isStorageFull = (error: unknown): error is AppError =>
  error instanceof AppError && error.code === 'STORAGE_FULL';

const blameOf = ({ name: source }: FileSource, name: string) => `${source} ${name}`;

/**
 * Brings what messages wait for: each file from whichever source has it, several at a time, tried again later and later
 * until its messages are rejected at their horizon (intake/pipeline/pipeline.ts), and then as often as is told (missed.ts). Nothing waits for
 * it but those messages.
 */
export class FileFetcher {
  readonly #options: FetcherOptions;
  readonly #parallel: number;
  readonly #sources: readonly AskedSource[];
  readonly #attempts = new Map<string, Attempt>();
  readonly #running = new Set<Promise<void>>();
  /** Sources and files of which they gave other bytes, the oldest first. */
  readonly #blamed = new Set<string>();
  #counts: FetchCounts = { fetched: 0, failed: 0, elapsedMs: 0 };

  constructor(options: FetcherOptions) {
    this.#options = options;
    const { sources, now, parallel = PARALLEL } = options;
    this.#parallel = parallel;
    const places = sources.length > 1 ? Math.ceil(parallel / SOURCE_PART) : parallel;
    this.#sources = sources.map(
      (source) => new AskedSource({ source, survey: this.#surveyOf(source), places, now }),
    );
  }

  get counts(): FetchCounts {
    return this.#counts;
  }

  #surveyOf(source: FileSource): Survey | undefined {
    const { swept, now, log } = this.#options;
    return isSurveyed(source) ? new Survey({ source, swept: swept?.(), now, log }) : undefined;
  }

  /** Begins what is due, as much as may be under way. Does not wait for it. @returns how many were begun */
  async look(signal: AbortSignal): Promise<number> {
    const { db, own, random = Math.random, reserve = BOUNDLESS, lost, missed } = this.#options;
    if ((this.#sources.length === 0 && !own) || !reserve.hasRoom) return 0;
    const lacking = new Set(await listLacking(db, random));
    const gone = new Set(lost?.names);
    const wanted = new Set([...lacking, ...gone, ...(missed?.names ?? [])]);
    await this.#endOthers(wanted);
    let begun = this.#beginHeld(lacking, signal);
    const waiting: string[] = [];
    for (const name of wanted) {
      const isBehind = !lacking.has(name);
      const attempt = this.#attempts.get(name) ?? newAttempt();
      this.#attempts.set(name, attempt);
      if (attempt.running || this.#isLater(attempt.nextMs)) continue;
      const behind = gone.has(name) ? 'lost' : 'missed';
      const want = isBehind ? behind : attempt.isKnown ? 'again' : 'new';
      const left = this.#listUnasked(name, attempt);
      const isFull = !this.#hasPlace(isBehind);
      if (!isFull && (left.length === 0 || left.some((source) => source.waitMs(want) === 0))) {
        this.#start(name, attempt, { want, isBehind }, signal);
        begun++;
        continue;
      }
      // What messages were rejected for is swept.
      if (want !== 'missed') waiting.push(name);
      if (!isFull && this.#putOffMs(attempt) >= PUT_OFF_MS) this.#end(name, attempt, false);
    }
    for (const { survey } of this.#sources) survey?.ask(waiting, signal);
    return begun;
  }

  #hasPlace(isBehind: boolean): boolean {
    const kept = isBehind ? Math.floor(this.#parallel / KEPT_PART) : 0;
    return this.#running.size < this.#parallel - kept;
  }

  /**
   * Begins what sources say to have, of those who say so. It waits for none that nobody has, and does not count as a try of the file: one
   * that lied is asked less, and the file's turn comes as it does anyway.
   */
  #beginHeld(lacking: ReadonlySet<string>, signal: AbortSignal): number {
    let begun = 0;
    const all = this.#sources.flatMap((source) =>
      [...(source.survey?.held ?? [])].map((name) => ({ source, name, isBehind: !lacking.has(name) })),
    );
    all.sort((a, b) => Number(a.isBehind) - Number(b.isBehind));
    for (const { source, name, isBehind } of all) {
      if (!this.#hasPlace(isBehind)) break;
      const attempt = this.#attempts.get(name) ?? newAttempt();
      if (attempt.running || source.waitMs('held') > 0) continue;
      this.#attempts.set(name, attempt);
      this.#start(name, attempt, { want: 'held', isBehind, from: source }, signal);
      begun++;
    }
    return begun;
  }

  /** A source answers again that did not: what waits for its next try is asked for at once. */
  wake(): void {
    for (const attempt of this.#attempts.values()) {
      Object.assign(attempt, { attempts: 0, nextMs: 0 });
      attempt.asked.clear();
    }
    for (const { survey } of this.#sources) survey?.wake();
    this.#options.missed?.wake();
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#sources.map(({ survey }) => survey?.idle()));
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Ends tries for what no message lacks any more. What one was rejected for meanwhile comes to its end. */
  async #endOthers(wanted: ReadonlySet<string>): Promise<void> {
    const running: string[] = [];
    for (const [name, attempt] of this.#attempts) {
      if (wanted.has(name)) continue;
      if (attempt.running) running.push(name);
      else this.#attempts.delete(name);
    }
    for (const name of await listUnlacked(this.#options.db, running))
      this.#attempts.get(name)?.running?.abort();
  }

  #isLater(ms: number): boolean {
    const waitMs = ms - this.#options.now();
    // Longer than any pause: the clock has been set back since.
    return waitMs > 0 && waitMs <= RETRY_MAX_MS;
  }

  #listAble(name: string): AskedSource[] {
    return this.#sources.filter(({ source }) => source.handles(name));
  }

  #listUnasked(name: string, { asked }: Attempt): AskedSource[] {
    return this.#listAble(name).filter((source) => !asked.has(source));
  }

  #start(name: string, attempt: Attempt, trying: Trying, signal: AbortSignal): void {
    const { now, log } = this.#options;
    attempt.running = new AbortController();
    if (attempt.asked.size === 0) attempt.sinceMs = now();
    const ended = AbortSignal.any([signal, attempt.running.signal]);
    const startMs = performance.now();
    const task = this.#fetch(name, attempt, trying, ended)
      .catch((error) => {
        if (!ended.aborted) log.warn({ err: error, file: name }, 'a file could not be fetched');
        return false;
      })
      .then((isHere) => {
        attempt.running = undefined;
        this.#running.delete(task);
        const { fetched, failed, elapsedMs } = this.#counts;
        const tookMs = performance.now() - startMs;
        this.#counts = { fetched, failed, elapsedMs: elapsedMs + tookMs };
        const isNoTry = !isHere && trying.from !== undefined;
        if (isHere || !(isNoTry || this.#putOff(name, attempt, trying.want)))
          this.#end(name, attempt, isHere);
      });
    this.#running.add(task);
  }

  /** For how long a try is put off for those that could not be asked yet, since others were. */
  #putOffMs({ asked, sinceMs }: Attempt): number {
    const putOffMs = asked.size === 0 ? 0 : this.#options.now() - sinceMs;
    // The clock has been set back since.
    return putOffMs < 0 ? PUT_OFF_MS : putOffMs;
  }

  /** Puts a try off until those can be asked that could not be. @returns whether there are any, and it has not waited for them enough */
  #putOff(name: string, attempt: Attempt, want: Want): boolean {
    const left = this.#listUnasked(name, attempt);
    const restMs = attempt.asked.size === 0 ? RETRY_MAX_MS : PUT_OFF_MS - this.#putOffMs(attempt);
    if (left.length === 0 || restMs <= 0) return false;
    attempt.nextMs = this.#options.now() + Math.min(restMs, ...left.map((source) => source.waitMs(want)));
    return true;
  }

  /** All were asked that could be. */
  #end(name: string, attempt: Attempt, isHere: boolean): void {
    const { now, random = Math.random, lost, missed } = this.#options;
    attempt.attempts++;
    attempt.nextMs = now() + backoffMs(attempt.attempts, RETRY_BASE_MS, RETRY_MAX_MS, random());
    attempt.isKnown = true;
    attempt.asked.clear();
    lost?.note(name, isHere);
    missed?.note(name, isHere);
    if (isHere) for (const { survey } of this.#sources) survey?.drop(name);
    const { fetched, failed, elapsedMs } = this.#counts;
    this.#counts = { fetched: fetched + (isHere ? 1 : 0), failed: failed + (isHere ? 0 : 1), elapsedMs };
  }

  /** Once for each file: the disk of an honest node may have damaged one, and it would be asked for that again and again. */
  #blame(source: FileSource, name: string): void {
    if (this.#isBlamed(source, name)) return;
    this.#blamed.add(blameOf(source, name));
    if (this.#blamed.size > BLAMED_MAX) this.#blamed.delete(this.#blamed.values().next().value!);
    source.onWrongBytes?.();
  }

  #isBlamed(source: FileSource, name: string): boolean {
    return this.#blamed.has(blameOf(source, name));
  }

  /** Asks those sources one after another that were not asked in this try and can be, beginning anywhere. */
  async #fetch(name: string, attempt: Attempt, trying: Trying, signal: AbortSignal): Promise<boolean> {
    const { random = Math.random } = this.#options;
    // Once: bytes that are damaged here are read whole before that is seen.
    if (!attempt.isKnown && attempt.asked.size === 0 && (await this.#takeOwn(name, signal))) return true;
    const able = this.#listAble(name);
    const first = Math.floor(random() * able.length);
    const inOrder = [...able.slice(first), ...able.slice(0, first)];
    // Who gave other bytes of it does so again.
    const order = inOrder.sort(
      (a, b) => Number(this.#isBlamed(a.source, name)) - Number(this.#isBlamed(b.source, name)),
    );
    const asked = new Set<AskedSource>();
    return race((isSlow) => {
      if (signal.aborted) return undefined;
      for (const one of order) {
        const want = asked.has(one) ? undefined : wantOf(name, one, attempt, trying, isSlow);
        const asking = want && one.begin(want);
        if (!asking) continue;
        asked.add(one);
        return this.#ask(name, attempt, trying, { one, asking, signal });
      }
      return undefined;
    });
  }

  /** Asks one source. What it sends ends with the try. */
  #ask(name: string, attempt: Attempt, trying: Trying, { one, asking, signal }: Asked): Runner {
    const { log } = this.#options;
    const stop = new AbortController();
    const ended = AbortSignal.any([signal, stop.signal]);
    const came = { bytes: 0 };
    if (!trying.from) attempt.asked.add(one);
    const open = async () => {
      using _ = asking;
      const opened = await one.source.open(name, ended);
      if (opened !== undefined && 'restMs' in opened) {
        asking.noteRest(opened.restMs);
        if (!trying.from) attempt.asked.delete(one);
        return false;
      }
      one.survey?.drop(name);
      if (opened === undefined) return false;
      asking.noteHit();
      using _end = addAbortListener(ended, () => opened.stream.destroy());
      const became = await this.#receive(name, opened, one, minutesOf(attempt, trying), came);
      if (became === 'wrong') {
        asking.noteWrong();
        this.#blame(one.source, name);
      }
      return became === 'kept';
    };
    return {
      ended: open().catch((error) => {
        one.survey?.drop(name);
        if (ended.aborted) return false;
        const fields = { file: name, source: one.source.name };
        const isFirst = attempt.attempts === 0 && isStorageFull(error);
        if (isFirst)
          log.warn({ ...fields, why: error.message }, 'a file that messages name does not fit here');
        else log.debug({ err: error, ...fields }, 'a source failed to provide a file');
        return false;
      }),
      bytes: () => came.bytes,
      end: () => stop.abort(),
    };
  }

  /** A database that was restored to an earlier moment knows nothing of files that came since. */
  async #takeOwn(name: string, signal: AbortSignal): Promise<boolean> {
    const { own, log } = this.#options;
    try {
      const opened = await own?.open(name, signal);
      return opened !== undefined && 'stream' in opened && (await this.#keep(name, opened)) === 'kept';
    } catch (error) {
      log.debug({ err: error, file: name }, 'a file of the own store could not be read');
      return false;
    }
  }

  /** Receives a file from a source, for so many minutes slowly. Throws what the source failed with. */
  async #receive(
    name: string,
    opened: Opened,
    asked: AskedSource,
    minutes: number,
    came: { bytes: number },
  ): Promise<'kept' | 'wrong'> {
    const isAlone = this.#listAble(name).length === 1;
    using _pace = watchPace(opened.stream, {
      from: asked.source.name,
      minutes,
      leastBytes: () => (isAlone ? 0 : LEAST_BYTES / asked.running),
      onBytes: (count) => {
        came.bytes += count;
      },
    });
    return await this.#keep(name, opened);
  }

  /** Throws FILE_TOO_LARGE where it is larger than it can be, and what the stream failed with. */
  async #keep(name: string, { stream, contentType, sizeBytes }: Opened): Promise<'kept' | 'wrong'> {
    const { files, lost } = this.#options;
    const limitBytes = lost?.sizeOf(name) ?? files.limitBytes;
    if (sizeBytes !== undefined && sizeBytes > limitBytes) {
      stream.destroy();
      throw new AppError('FILE_TOO_LARGE', `it would be ${sizeBytes} bytes, of at most ${limitBytes}`);
    }
    const blob = await files.receive(stream, limitBytes, sizeBytes).catch((error: unknown) => {
      stream.destroy();
      throw error;
    });
    try {
      if (blob.hash !== name) return 'wrong';
      await files.storeUnpinned(blob, contentType);
      return 'kept';
    } finally {
      await blob.discard();
    }
  }
}
