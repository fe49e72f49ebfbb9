import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Failures, type Logger, pause, readTextIfAny, writeFileAtomically } from '@skerry/kit';
import type { ItemHash } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';
import type { BlobStore, KeptBlob } from '../blob-store.ts';
import type { Claims } from '../claims.ts';
import { pathOfBlob } from '../directory-store.ts';
import type { LostFiles } from '../lost.ts';
import { DamagedBlobs } from './damaged.ts';
import { dropCached } from './page-cache.ts';
import { doneShare, formatPass, heedClock, isDue, nextPass, type Pass, parsePass } from './scrub-pass.ts';
import { isClosed, isDamage, isUnreadable, PassedOver } from './unreadable.ts';

/** Kept in the directory of the files: the process that goes on with it may be another one. */
const PASS_FILE = 'scrub.json';
const DAY_MS = 86_400_000;
const MIB = 1024 ** 2;
/** Blobs whose names are held at once. */
const LISTED = 100;
/** What was read since is read again after a kill. */
const NOTE_MS = 30_000;
/** Damaged ones in a row: it is the disk that fails, or the memory, and no longer single files. */
const IN_ROW_MAX = 8;
/** Then nothing is read for so long. */
const REST_MS = 3_600_000;
/** Between two times that what is damaged is asked for. */
const ASK_MS = 600_000;
/** Damaged ones that are looked after in one round. */
const LOOKED_AFTER = 1_000;

/** To open a file costs a disk at least as much as to read so much. */
const OPEN_BYTES = 64 * 1_024;
/** What it comes to; undefined as soon as the signal ends: nobody waits for a disk that hangs. */
async function unlessEnded<T>(running: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: ended, resolve } = Promise.withResolvers<undefined>();
  const end = () => resolve(undefined);
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  try {
    return await Promise.race([running, ended]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

export interface ScrubCounts {
  readonly files: number;
  readonly bytes: number;
  readonly damaged: number;
}

export interface ScrubOptions {
  readonly db: Kysely<Schema>;
  readonly blobs: Pick<BlobStore, 'list' | 'find' | 'read'>;
  readonly claims: Claims;
  readonly lost: Pick<LostFiles, 'add'>;
  /** Gets a block of IPFS again from elsewhere, if somebody has it. */
  readonly restoreBlock: (hash: ItemHash, signal: AbortSignal) => Promise<unknown>;
  /** Of the blobs. */
  readonly directory: string;
  readonly days: number;
  readonly mibPerSecond: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Logger;
  /** Waits in the place of a timer; false where the signal ended. */
  readonly rest?: typeof pause;
  /** Has the system forget what it has in memory of a file; dropCached by default. */
  readonly drop?: (path: string) => Promise<void>;
}

/** A message keeps the file, something of IPFS is made of the block, or nobody needs it. */
type Need = { readonly kind: 'file'; readonly sizeBytes: number } | { readonly kind: 'block' } | undefined;

/**
 * Reads all blobs of a directory again, slowly, and compares each with its hash: a disk may change what it holds and say nothing. One that
 * is damaged is put aside, and is then a lost one.
 */
export class Scrub {
  readonly #options: ScrubOptions;
  readonly #damagedBlobs: DamagedBlobs;
  #pass: Pass | undefined;
  #listed: KeptBlob[] = [];
  /** As it was written last. */
  #noted = '';
  #notedMs = 0;
  #askedMs = Number.NEGATIVE_INFINITY;
  #inRow = 0;
  #restUntilMs = 0;
  readonly #closed: Failures;
  readonly #unread: PassedOver;
  #counts: ScrubCounts = { files: 0, bytes: 0, damaged: 0 };

  constructor(options: ScrubOptions) {
    this.#options = options;
    this.#damagedBlobs = new DamagedBlobs(options.directory);
    const what = 'a file cannot be opened to be read again: it is passed over';
    this.#closed = new Failures({ log: options.log, what });
    const unread = 'the disk cannot read a directory of files, or a file in it: it is passed over';
    this.#unread = new PassedOver(options.log, unread);
  }

  get counts(): ScrubCounts {
    return this.#counts;
  }

  /** Of the pass, from 0 to 1. */
  get share(): number {
    return this.#pass ? doneShare(this.#pass) : 0;
  }

  /** Reads what is due. Ends with the signal. */
  async round(signal: AbortSignal): Promise<void> {
    await this.#lookAfterDamaged(signal);
    const { now, days } = this.#options;
    const periodMs = days * DAY_MS;
    if (days === 0 || this.#rests) return;
    this.#pass = heedClock(this.#pass ?? (await this.#readPass()), now(), periodMs);
    while (!signal.aborted) {
      const blob = await this.#next();
      if (this.#rests) return;
      if (!blob) {
        const next = nextPass(this.#pass, now(), periodMs);
        if (next) await this.#note(next, signal);
        break;
      }
      if (!isDue(blob.hash, this.#pass, now(), periodMs)) break;
      if (!(await this.#check(blob, signal))) break;
      this.#listed.shift();
      this.#pass = { ...this.#pass, after: blob.hash };
      if (Math.abs(now() - this.#notedMs) >= NOTE_MS) await this.#note(this.#pass, signal);
    }
    await this.#note(this.#pass, signal);
  }

  /** A clock that was set back makes it no longer. */
  get #rests(): boolean {
    const restMs = this.#restUntilMs - this.#options.now();
    return restMs > 0 && restMs <= REST_MS;
  }

  /** The one whose turn is next; undefined at the end. */
  async #next(): Promise<KeptBlob | undefined> {
    if (this.#listed.length === 0) await this.#list(this.#pass!.after);
    return this.#listed[0];
  }

  /** What comes behind a directory that the disk cannot read is read all the same, unless all of them are so. */
  async #list(after: string): Promise<void> {
    const { blobs, log } = this.#options;
    const from = after === '' ? undefined : (after as ItemHash);
    this.#listed = [...(await blobs.list(from, LISTED, this.#unread.note))];
    if (this.#unread.tell() <= IN_ROW_MAX || this.#listed.length > 0) return;
    this.#rest();
    log.error('no directory of files can be read: the disk of this server fails; none is tried for an hour');
  }

  async #readPass(): Promise<Pass> {
    const { directory, now } = this.#options;
    const text = await readTextIfAny(join(directory, PASS_FILE));
    const pass = text === undefined ? undefined : parsePass(text);
    this.#noted = pass ? formatPass(pass) : '';
    return pass ?? { after: '', sinceMs: now() };
  }

  async #note(pass: Pass, signal: AbortSignal): Promise<void> {
    const { directory, now } = this.#options;
    if (pass.after === '' && this.#pass?.after !== '') this.#listed = [];
    this.#pass = pass;
    this.#notedMs = now();
    const text = formatPass(pass);
    if (text === this.#noted || signal.aborted) return;
    await unlessEnded(writeFileAtomically(join(directory, PASS_FILE), text, 0o600), signal);
    this.#noted = text;
  }

  /** @returns false where the signal ended, or the scrub rests */
  async #check({ hash }: KeptBlob, signal: AbortSignal): Promise<boolean> {
    const { log } = this.#options;
    const first = await this.#isDamaged(hash, signal);
    if (signal.aborted) return false;
    const { files, bytes, damaged } = this.#counts;
    if (first !== true) {
      this.#inRow = 0;
      this.#counts = { files: files + (first === false ? 1 : 0), bytes, damaged };
      return true;
    }
    if (this.#inRow >= IN_ROW_MAX) {
      this.#inRow = 0;
      this.#rest();
      log.error(
        { file: hash },
        `${IN_ROW_MAX + 1} files in a row are damaged: the disk or the memory of this server fails; no more is put aside for an hour`,
      );
      return false;
    }
    if (await this.#putAside(hash, signal)) {
      this.#inRow++;
      this.#counts = { files: files + 1, bytes: this.#counts.bytes, damaged: damaged + 1 };
      await this.#lookAfterDamaged(signal);
    }
    return !signal.aborted && !this.#rests;
  }

  #rest(): void {
    this.#restUntilMs = this.#options.now() + REST_MS;
  }

  /** Undefined where it went meanwhile, cannot be opened, or the signal ended. Throws what says nothing of the file. */
  #isDamaged(hash: ItemHash, signal: AbortSignal): Promise<boolean | undefined> {
    return unlessEnded(this.#readWhole(hash, signal), signal);
  }

  /** No faster than may be. */
  async #readWhole(hash: ItemHash, signal: AbortSignal): Promise<boolean | undefined> {
    const { blobs, mibPerSecond, rest = pause } = this.#options;
    const restFor = (bytes: number) => rest((bytes / (mibPerSecond * MIB)) * 1_000, signal);
    const digest = createHash('sha256');
    try {
      if (!(await restFor(OPEN_BYTES))) return undefined;
      const stream = await blobs.read(hash);
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        digest.update(chunk);
        const { bytes } = this.#counts;
        this.#counts = { ...this.#counts, bytes: bytes + chunk.length };
        if (!(await restFor(chunk.length))) return undefined;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'FILE_NOT_FOUND') return undefined;
      if (isDamage(error)) return true;
      if (!isClosed(error)) throw error;
      this.#closed.note(error);
      return undefined;
    }
    return digest.digest('hex') !== hash;
  }

  /** Once more: it may have been replaced, or come wrong from the memory alone. */
  async #putAside(hash: ItemHash, signal: AbortSignal): Promise<boolean> {
    const { claims, log } = this.#options;
    const seen = await this.#find(hash);
    if (!seen) return false;
    await unlessEnded(this.#drop(hash), signal);
    if (signal.aborted || (await this.#isDamaged(hash, signal)) !== true) return false;
    // Not before: whoever stores it would wait for all that reading.
    using claim = claims.tryTake(hash);
    if (!claim || !(await this.#move(seen))) return false;
    this.#askedMs = Number.NEGATIVE_INFINITY;
    log.error({ file: hash }, 'a file on the disk is damaged: it is put aside, and asked for elsewhere');
    return true;
  }

  /** Without it, the same bytes would come from the memory again, and say nothing of the disk. */
  async #drop(hash: ItemHash): Promise<void> {
    const { directory, drop = dropCached, log } = this.#options;
    try {
      await drop(pathOfBlob(directory, hash));
    } catch (err) {
      log.warn(
        { err, file: hash },
        'a file that is damaged may be so in the memory alone: it cannot be dropped',
      );
    }
  }

  /** Undefined, too, where the disk cannot even tell its size: then it cannot be moved either. */
  async #find(hash: ItemHash): Promise<KeptBlob | undefined> {
    try {
      return await this.#options.blobs.find(hash);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.#unread.note(hash, error);
      this.#unread.tell();
      return undefined;
    }
  }

  async #move(seen: KeptBlob): Promise<boolean> {
    try {
      return await this.#damagedBlobs.put(seen);
    } catch (err) {
      // It would be read again and again.
      this.#rest();
      const message = 'a file on the disk is damaged and cannot be put aside: none is read again for an hour';
      this.#options.log.error({ err, file: seen.hash }, message);
      return false;
    }
  }

  /** Asks for what was put aside, and removes it once it is here again, or nobody needs it. */
  async #lookAfterDamaged(signal: AbortSignal): Promise<void> {
    const { blobs, log, now } = this.#options;
    const aside = await this.#damagedBlobs.list();
    const isTime = Math.abs(now() - this.#askedMs) >= ASK_MS;
    if (isTime) this.#askedMs = now();
    for (const hash of aside.slice(0, LOOKED_AFTER)) {
      const isNeeded = !isTime || (await this.#askFor(hash, signal));
      if (isNeeded && !(await blobs.find(hash))) continue;
      await this.#damagedBlobs.remove(hash);
      log.info(
        { file: hash },
        isNeeded ? 'a damaged file is here again' : 'nobody needs a damaged file: removed',
      );
    }
  }

  /** @returns whether it is needed */
  async #askFor(hash: ItemHash, signal: AbortSignal): Promise<boolean> {
    const { blobs, lost, restoreBlock, log } = this.#options;
    const need = await this.#findNeed(hash);
    if (need?.kind === 'file') lost.add(hash, need.sizeBytes);
    if (need?.kind === 'block' && !(await blobs.find(hash)))
      await restoreBlock(hash, signal).catch((err) =>
        log.debug({ err, file: hash }, 'a damaged block of IPFS did not come from elsewhere'),
      );
    return need !== undefined;
  }

  async #findNeed(hash: ItemHash): Promise<Need> {
    const { rows } = await sql<{ bytes: number | null; block: boolean }>`
      select (select size_bytes from files where hash = ${hash}
          and exists (select from file_pins where file_hash = ${hash})) as bytes,
        exists (select from ipfs_blocks where block = decode(${hash}, 'hex')) as block`.execute(
      this.#options.db,
    );
    const { bytes = null, block = false } = rows[0] ?? {};
    if (bytes !== null) return { kind: 'file', sizeBytes: Number(bytes) };
    return block ? { kind: 'block' } : undefined;
  }
}
