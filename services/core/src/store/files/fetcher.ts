import type { Readable } from 'node:stream';
import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { backoffMs, type Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { fileKey, fileOf, isFileKeyIn } from '../dependency-keys.ts';
import type { Schema } from '../schema.ts';
import type { Files } from './files.ts';
import type { LostFiles } from './lost.ts';

/** Port: a place where files can be had by name. Adapters: other core nodes (peers/sync/file-source.ts), IPFS. */
export interface FileSource {
  readonly name: string;
  /** Whether it has files of such names: SHA-256 in hexadecimal, or CIDs. */
  handles(name: string): boolean;
  /** undefined: it does not have the file. The bytes are checked by the caller. */
  open(name: string, signal: AbortSignal): Promise<{ stream: Readable; contentType: string } | undefined>;
  /** Told when the bytes were not those of the name. */
  onWrongBytes?(): void;
}

/** Files that are fetched at the same time. */
const PARALLEL = 8;
/** Files that are looked for at the same time; what is beyond waits for its turn. */
const WANTED_MAX = 10_000;
const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 300_000;
/** A file that comes this slowly is given up, and tried again. */
const IDLE_MS = 30_000;
/** Wrong files of sources that are remembered. */
const BLAMED_MAX = 10_000;

interface Attempt {
  attempts: number;
  nextMs: number;
  /** Ends the try that runs; undefined where none does. */
  running: AbortController | undefined;
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
 * own wait for it; of each, those that expire first are at the front.
 */
async function listLacking(db: Kysely<Schema>): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    select key from (
      select d.key, m.decide_by_ms,
        row_number() over (partition by m.sender order by m.decide_by_ms, d.key) as turn
      from messages m join dependencies d on d.item_hash = m.item_hash
      where m.status = 'pending' and ${isFileKeyIn('d.key')} and length(d.key) = ${KEY_CHARS}) as lacking
    group by key order by min(turn), min(decide_by_ms), key limit ${WANTED_MAX}`.execute(db);
  return rows.map(({ key }) => fileOf(key));
}

export interface FetcherOptions {
  readonly db: Kysely<Schema>;
  readonly files: Files;
  readonly sources: readonly FileSource[];
  readonly now: () => number;
  readonly random?: () => number;
  readonly reserve?: DiskReserve;
  /** What is to be fetched again, after what messages wait for. */
  readonly lost?: Pick<LostFiles, 'names' | 'note'>;
  /** Files that are fetched at the same time. */
  readonly parallel?: number;
  readonly log: Logger;
}

/**
 * Brings what messages wait for: each file from whichever source has it, several at a time, tried again later and later
 * until its messages are rejected at their horizon (intake/pipeline/pipeline.ts). Nothing waits for it but those messages.
 */
export class FileFetcher {
  readonly #options: FetcherOptions;
  readonly #attempts = new Map<string, Attempt>();
  readonly #running = new Set<Promise<void>>();
  /** Sources and files of which they gave other bytes, the oldest first. */
  readonly #blamed = new Set<string>();
  #counts: FetchCounts = { fetched: 0, failed: 0, elapsedMs: 0 };

  constructor(options: FetcherOptions) {
    this.#options = options;
  }

  get counts(): FetchCounts {
    return this.#counts;
  }

  /** Begins what is due, as much as may be under way. Does not wait for it. @returns how many were begun */
  async look(signal: AbortSignal): Promise<number> {
    const { db, sources, now, parallel = PARALLEL, reserve = BOUNDLESS, lost } = this.#options;
    let begun = 0;
    if (sources.length === 0 || !reserve.hasRoom) return begun;
    const lacking = await listLacking(db);
    const wanted = new Set([...lacking, ...(lost?.names ?? [])]);
    for (const [name, { running }] of this.#attempts) {
      if (wanted.has(name)) continue;
      if (!running) this.#attempts.delete(name);
      // Beyond so many nobody knows whether it is still waited for.
      else if (lacking.length < WANTED_MAX) running.abort();
    }
    for (const name of wanted) {
      if (this.#running.size >= parallel) break;
      const attempt = this.#attempts.get(name) ?? { attempts: 0, nextMs: 0, running: undefined };
      this.#attempts.set(name, attempt);
      const waitMs = attempt.nextMs - now();
      // Longer than any pause: the clock has been set back since.
      if (attempt.running || (waitMs > 0 && waitMs <= RETRY_MAX_MS)) continue;
      this.#start(name, attempt, signal);
      begun++;
    }
    return begun;
  }

  /** A source answers again that did not: what waits for its next try is asked for at once. */
  wake(): void {
    for (const attempt of this.#attempts.values()) Object.assign(attempt, { attempts: 0, nextMs: 0 });
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #start(name: string, attempt: Attempt, signal: AbortSignal): void {
    const { now, random = Math.random, log } = this.#options;
    attempt.running = new AbortController();
    const ended = AbortSignal.any([signal, attempt.running.signal]);
    const startMs = performance.now();
    const task = this.#fetch(name, ended)
      .catch((error) => {
        if (!ended.aborted) log.warn({ err: error, file: name }, 'a file could not be fetched');
        return false;
      })
      .then((isHere) => {
        attempt.running = undefined;
        attempt.attempts++;
        attempt.nextMs = now() + backoffMs(attempt.attempts, RETRY_BASE_MS, RETRY_MAX_MS, random());
        this.#running.delete(task);
        this.#options.lost?.note(name, isHere);
        const { fetched, failed, elapsedMs } = this.#counts;
        this.#counts = {
          fetched: fetched + (isHere ? 1 : 0),
          failed: failed + (isHere ? 0 : 1),
          elapsedMs: elapsedMs + performance.now() - startMs,
        };
      });
    this.#running.add(task);
  }

  /** Once for each file: the disk of an honest node may have damaged one, and it would be asked for that again and again. */
  #blame(source: FileSource, name: string): void {
    const key = `${source.name} ${name}`;
    if (this.#blamed.has(key)) return;
    this.#blamed.add(key);
    if (this.#blamed.size > BLAMED_MAX) this.#blamed.delete(this.#blamed.values().next().value!);
    source.onWrongBytes?.();
  }

  /** Asks the sources one after another, beginning anywhere. */
  async #fetch(name: string, signal: AbortSignal): Promise<boolean> {
    const { sources, random = Math.random, log } = this.#options;
    const able = sources.filter((source) => source.handles(name));
    const first = Math.floor(random() * able.length);
    for (let at = 0; at < able.length; at++) {
      const source = able[(first + at) % able.length]!;
      try {
        if (await this.#fetchFrom(source, name, signal)) return true;
      } catch (error) {
        if (signal.aborted) return false;
        log.debug({ err: error, file: name, source: source.name }, 'a source failed to provide a file');
      }
    }
    return false;
  }

  async #fetchFrom(source: FileSource, name: string, signal: AbortSignal): Promise<boolean> {
    const { files } = this.#options;
    const opened = await source.open(name, signal);
    if (!opened) return false;
    const { stream, contentType } = opened;
    let timer = setTimeout(() => {}, 0);
    const rest = () => {
      clearTimeout(timer);
      timer = setTimeout(
        () => stream.destroy(new AppError('UPSTREAM_UNAVAILABLE', `${source.name} stopped sending`)),
        IDLE_MS,
      );
    };
    stream.on('data', rest);
    stream.pause();
    rest();
    try {
      const blob = await files.receive(stream);
      try {
        if (blob.hash !== name) {
          this.#blame(source, name);
          return false;
        }
        await files.storeUnpinned(blob, contentType);
        return true;
      } finally {
        await blob.discard();
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
