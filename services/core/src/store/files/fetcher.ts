import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { backoffMs, type Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { fileKey, fileOf, fileOfIn, isFileKeyIn } from '../dependency-keys.ts';
import type { Schema } from '../schema.ts';
import { AskedSource, type Want } from './fetching/asked-source.ts';
import { watchPace } from './fetching/pace.ts';
import type { FileSource, Opened } from './fetching/source.ts';
import type { Files } from './files.ts';
import type { LostFiles } from './lost.ts';
import type { MissedFiles } from './missed.ts';
import { listUnlacked } from './wanted.ts';

/** Files that are fetched at the same time. One in so many is kept for what pending messages lack. */
const PARALLEL = 8;
const KEPT_PART = 4;
/** Of them, at most one in so many is one source's, where there are others: one that sends slowly holds up none of what others have. */
const SOURCE_PART = 2;
/** Files that are looked for at the same time; what is beyond waits for its turn. */
const WANTED_MAX = 10_000;
const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 300_000;
/** So long a try waits for sources that could not be asked yet. Then those that were asked may be asked again. */
const HELD_MS = 60_000;
/**
 * Where another source could be asked, all that comes of one at the same time is this much a minute together, in bytes (17 kB/s). A file that
 * was in vain before has more minutes to show it, up to so many: an honest source may be slow.
 */
const LEAST_BYTES = 1024 * 1024;
const SLOW_MINUTES_MAX = 10;
/** Wrong files of sources that are remembered. */
const BLAMED_MAX = 10_000;

interface Attempt {
  /** Tries in a row that were in vain. */
  attempts: number;
  nextMs: number;
  /** Ends the try that runs; undefined where none does. */
  running: AbortController | undefined;
  /** Whether all sources were asked for it once. */
  isKnown: boolean;
  /** Those that were asked in this try; the others rest, or have no place free. */
  readonly asked: Set<AskedSource>;
  /** When the first of them was asked. */
  sinceMs: number;
}

export interface FetchCounts {
  readonly fetched: number;
  readonly failed: number;
  readonly elapsedMs: number;
}

/** Of a key with a SHA-256. What is named by a CID comes by IPFS (store/ipfs/fetcher.ts), and has another hash than its name. */
const KEY_CHARS = fileKey('').length + 64;

/**
 * Names of files that pending messages lack. Senders take turns, so that however many files one of them names, only its
 * own wait for it; of each, those that expire first are at the front. Equals come in any order: a queue of keys that nobody used before,
 * which are free, leaves those behind it their chance. A message whose content came hangs on that, too, while it lacks
 * its file: what is here is left out.
 */
async function listLacking(db: Kysely<Schema>, random: () => number): Promise<string[]> {
  const { rows } = await sql<{ key: string; turn: number }>`
    select key, min(turn)::int as turn from (
      select d.key, m.decide_by_ms,
        row_number() over (partition by m.sender order by m.decide_by_ms, d.key) as turn
      from messages m join dependencies d on d.item_hash = m.item_hash
      where m.status = 'pending' and ${isFileKeyIn('d.key')} and length(d.key) = ${KEY_CHARS}
        and not exists (select from files where files.hash = ${fileOfIn('d.key')})) as lacking
    group by key order by min(turn), min(decide_by_ms), key limit ${WANTED_MAX}`.execute(db);
  const drawn = rows.map(({ key, turn }) => ({ key, turn, lot: random() }));
  return drawn.sort((a, b) => a.turn - b.turn || a.lot - b.lot).map(({ key }) => fileOf(key));
}

export interface FetcherOptions {
  readonly db: Kysely<Schema>;
  readonly files: Files;
  readonly sources: readonly FileSource[];
  /** Looked into before any of the sources is asked: what is here already costs nobody anything. */
  readonly own?: Pick<FileSource, 'open'>;
  readonly now: () => number;
  readonly random?: () => number;
  readonly reserve?: DiskReserve;
  /** What is to be fetched again, after what messages wait for. */
  readonly lost?: Pick<LostFiles, 'names' | 'note' | 'sizeOf'>;
  /** What messages were rejected for, after that. */
  readonly missed?: Pick<MissedFiles, 'names' | 'note' | 'wake'>;
  /** Files that are fetched at the same time. */
  readonly parallel?: number;
  readonly log: Logger;
}

const newAttempt = (): Attempt => ({
  ...{ attempts: 0, nextMs: 0, running: undefined, isKnown: false },
  ...{ asked: new Set(), sinceMs: 0 },
});

/** Where nobody waits for a file, it may take its time. */
const minutesOf = ({ attempts }: Attempt, want: Want) =>
  want === 'lost' || want === 'missed' ? SLOW_MINUTES_MAX : Math.min(attempts + 1, SLOW_MINUTES_MAX);

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
    this.#sources = sources.map((source) => new AskedSource({ source, places, now }));
  }

  get counts(): FetchCounts {
    return this.#counts;
  }

  /** Begins what is due, as much as may be under way. Does not wait for it. @returns how many were begun */
  async look(signal: AbortSignal): Promise<number> {
    const { db, own, random = Math.random, reserve = BOUNDLESS, lost, missed } = this.#options;
    let begun = 0;
    if ((this.#sources.length === 0 && !own) || !reserve.hasRoom) return begun;
    const lacking = new Set(await listLacking(db, random));
    const gone = new Set(lost?.names);
    const wanted = new Set([...lacking, ...gone, ...(missed?.names ?? [])]);
    await this.#endOthers(wanted);
    const forBehind = this.#parallel - Math.floor(this.#parallel / KEPT_PART);
    for (const name of wanted) {
      const isBehind = !lacking.has(name);
      if (this.#running.size >= (isBehind ? forBehind : this.#parallel)) break;
      const attempt = this.#attempts.get(name) ?? newAttempt();
      this.#attempts.set(name, attempt);
      if (attempt.running || this.#isLater(attempt.nextMs)) continue;
      const behind = gone.has(name) ? 'lost' : 'missed';
      const want = isBehind ? behind : attempt.isKnown ? 'again' : 'new';
      const left = this.#listUnasked(name, attempt);
      if (left.length === 0 || left.some((source) => source.waitMs(want) === 0)) {
        this.#start(name, attempt, want, signal);
        begun++;
      } else if (this.#heldMs(attempt) >= HELD_MS) this.#end(name, attempt, false);
    }
    return begun;
  }

  /** A source answers again that did not: what waits for its next try is asked for at once. */
  wake(): void {
    for (const attempt of this.#attempts.values()) {
      Object.assign(attempt, { attempts: 0, nextMs: 0 });
      attempt.asked.clear();
    }
    this.#options.missed?.wake();
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
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

  #start(name: string, attempt: Attempt, want: Want, signal: AbortSignal): void {
    const { now, log } = this.#options;
    attempt.running = new AbortController();
    if (attempt.asked.size === 0) attempt.sinceMs = now();
    const ended = AbortSignal.any([signal, attempt.running.signal]);
    const startMs = performance.now();
    const task = this.#fetch(name, attempt, want, ended)
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
        if (isHere || !this.#hold(name, attempt, want)) this.#end(name, attempt, isHere);
      });
    this.#running.add(task);
  }

  /** For how long a try has waited for those that could not be asked yet, since others were. */
  #heldMs({ asked, sinceMs }: Attempt): number {
    const heldMs = asked.size === 0 ? 0 : this.#options.now() - sinceMs;
    // The clock has been set back since.
    return heldMs < 0 ? HELD_MS : heldMs;
  }

  /** Puts a try off until those can be asked that could not be. @returns whether there are any, and it has not waited for them enough */
  #hold(name: string, attempt: Attempt, want: Want): boolean {
    const left = this.#listUnasked(name, attempt);
    const restMs = attempt.asked.size === 0 ? RETRY_MAX_MS : HELD_MS - this.#heldMs(attempt);
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
    const { fetched, failed, elapsedMs } = this.#counts;
    this.#counts = { fetched: fetched + (isHere ? 1 : 0), failed: failed + (isHere ? 0 : 1), elapsedMs };
  }

  /** Once for each file: the disk of an honest node may have damaged one, and it would be asked for that again and again. */
  #blame(source: FileSource, name: string): void {
    const key = `${source.name} ${name}`;
    if (this.#blamed.has(key)) return;
    this.#blamed.add(key);
    if (this.#blamed.size > BLAMED_MAX) this.#blamed.delete(this.#blamed.values().next().value!);
    source.onWrongBytes?.();
  }

  /** Asks those sources one after another that were not asked in this try and can be, beginning anywhere. */
  async #fetch(name: string, attempt: Attempt, want: Want, signal: AbortSignal): Promise<boolean> {
    const { random = Math.random, log } = this.#options;
    // Once: bytes that are damaged here are read whole before that is seen.
    if (!attempt.isKnown && attempt.asked.size === 0 && (await this.#takeOwn(name, signal))) return true;
    const able = this.#listUnasked(name, attempt);
    const first = Math.floor(random() * able.length);
    for (let at = 0; at < able.length; at++) {
      const asked = able[(first + at) % able.length]!;
      using asking = asked.begin(want);
      if (!asking) continue;
      attempt.asked.add(asked);
      try {
        const opened = await asked.source.open(name, signal);
        if (opened === undefined) continue;
        if ('restMs' in opened) {
          asking.noteRest(opened.restMs);
          attempt.asked.delete(asked);
          continue;
        }
        asking.noteHit();
        if (await this.#receive(name, opened, asked, minutesOf(attempt, want))) return true;
      } catch (error) {
        if (signal.aborted) return false;
        log.debug({ err: error, file: name, source: asked.source.name }, 'a source failed to provide a file');
      }
    }
    return false;
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

  /** Receives a file from a source. Throws what the source failed with. @param minutes for which it may come slowly */
  async #receive(name: string, opened: Opened, asked: AskedSource, minutes: number): Promise<boolean> {
    const { source } = asked;
    const isAlone = this.#listAble(name).length === 1;
    using _pace = watchPace(opened.stream, {
      from: source.name,
      minutes,
      leastBytes: () => (isAlone ? 0 : LEAST_BYTES / asked.running),
    });
    const became = await this.#keep(name, opened);
    if (became === 'wrong') this.#blame(source, name);
    return became === 'kept';
  }

  /** Throws FILE_TOO_LARGE where it is larger than it can be, and what the stream failed with. */
  async #keep(name: string, { stream, contentType, sizeBytes = 0 }: Opened): Promise<'kept' | 'wrong'> {
    const { files, lost } = this.#options;
    const limitBytes = lost?.sizeOf(name) ?? files.limitBytes;
    if (sizeBytes > limitBytes) {
      stream.destroy();
      throw new AppError('FILE_TOO_LARGE', `it would be ${sizeBytes} bytes, of at most ${limitBytes}`);
    }
    const blob = await files.receive(stream, limitBytes);
    try {
      if (blob.hash !== name) return 'wrong';
      await files.storeUnpinned(blob, contentType);
      return 'kept';
    } finally {
      await blob.discard();
    }
  }
}
