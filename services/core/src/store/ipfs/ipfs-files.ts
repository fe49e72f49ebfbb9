import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type Logger, runLoop } from '@skerry/kit';
import type { BlockId } from '@skerry/kit/unixfs';
import { type ItemHash, LIMITS } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { fileKey, type Touch } from '../dependency-keys.ts';
import type { ByteRange } from '../files/blob-store.ts';
import { Claims } from '../files/claims.ts';
import { isAwaited } from '../files/wanted.ts';
import type { Schema } from '../schema.ts';
import { lockWrites } from '../write-lock.ts';
import { parseCid } from './cid.ts';
import { timedOut, toTheEnd } from './idle.ts';
import type { AddOptions, Ipfs, IpfsEntry, IpfsNode, PinOptions, SentOptions } from './ipfs.ts';
import { letGoOfEach } from './let-go.ts';
import { IPFS_LIMITS } from './limits.ts';
import { SNIFFED_BYTES, sniffType } from './sniff.ts';

const DIRECTORY_TYPE = 'inode/directory';
const JSON_TYPE = 'application/json';
const UPKEEP_MS = 60_000;
/** CIDs that one round lets go of. */
const FORGOTTEN_PER_ROUND = 100;

export interface IpfsFile {
  readonly kind: 'file';
  readonly hash: string;
  readonly sizeBytes: number;
  readonly contentType: string;
  /** Blocks of it may be with others. */
  readonly isFar: true;
  open(range?: ByteRange): Promise<Readable>;
}
export interface IpfsDirectory {
  readonly kind: 'directory';
  readonly hash: string;
  readonly sizeBytes: number;
  list(): Promise<IpfsEntry[]>;
}

export interface IpfsFilesOptions {
  readonly db: Kysely<Schema>;
  readonly ipfs: Ipfs;
  readonly pipeline: Touch;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** How long what nothing keeps stays. */
  readonly graceMs: number;
  /** How long somebody who reads waits for a block. */
  readonly timeoutMs: number;
}

/** A file of IPFS that is kept, and what it is by its first bytes. */
export interface KeptNode extends IpfsNode {
  readonly contentType: string;
}

/** What is kept of IPFS, as the rest of the node sees it: rows of `files` whose hash is a CID. */
export class IpfsFiles {
  readonly #options: IpfsFilesOptions;
  /** Held while a CID is taken in or let go of. */
  readonly #claims = new Claims();

  constructor(options: IpfsFilesOptions) {
    this.#options = options;
  }

  /** Takes a file in. It is kept for the grace period; a message that names it keeps it for good. */
  async add(source: Readable, options: AddOptions): Promise<KeptNode> {
    const { id } = await this.#options.ipfs.add(source, options);
    return this.pin(id, { ...options, signal: toTheEnd() });
  }

  /** Takes what a CAR holds in; it is kept as a file that was added is. */
  async addCar(source: Readable, options: SentOptions): Promise<KeptNode> {
    const { id } = await this.#options.ipfs.addCar(source, options);
    return this.pin(id, { ...options, signal: toTheEnd() });
  }

  /** Brings everything below a CID here; messages that wait for it are decided again. */
  async pin(id: BlockId, options: PinOptions): Promise<KeptNode> {
    using _claim = await this.#claims.take(id.text as ItemHash);
    const node = await this.#options.ipfs.pin(id, options);
    // All of it is here: whether or not the caller is still there, it becomes a file, which is counted and goes as files do.
    const signal = toTheEnd();
    const kept = { ...node, contentType: await this.#typeOf(node, signal) };
    await this.#note(kept, signal);
    return kept;
  }

  /** Lets go of what came of a CID of which not all came, unless a pending message waits for it. */
  async abandon(id: BlockId): Promise<void> {
    const { db, ipfs } = this.#options;
    using _claim = await this.#claims.take(id.text as ItemHash);
    if (!(await isAwaited(db, id.text))) await ipfs.abandon(id);
  }

  /** Whatever is at a path below a CID, from here or from others. Throws what `Ipfs` throws. */
  async open(id: BlockId, path: readonly string[], signal: AbortSignal): Promise<IpfsFile | IpfsDirectory> {
    const { ipfs, timeoutMs } = this.#options;
    const timeout = AbortSignal.timeout(2 * timeoutMs);
    const limit = AbortSignal.any([signal, timeout]);
    const inTime = <T>(work: Promise<T>) =>
      work.catch((error: unknown) => {
        throw timeout.aborted && !signal.aborted ? timedOut(id.text, 2 * timeoutMs) : error;
      });
    const node = await inTime(ipfs.stat(id, path, limit));
    const { sizeBytes } = node;
    const hash = node.id.text;
    if (node.kind === 'directory')
      return {
        kind: 'directory',
        hash,
        sizeBytes,
        list: () => ipfs.list(node.id, IPFS_LIMITS.entries, signal),
      };
    return {
      kind: 'file',
      hash,
      sizeBytes,
      contentType: await inTime(this.#typeOf(node, limit)),
      isFar: true,
      open: (range) =>
        sizeBytes === 0 ? ipfs.read(node.id, undefined, signal) : ipfs.read(node.id, range, signal),
    };
  }

  block(id: BlockId, signal: AbortSignal): Promise<Uint8Array> {
    return this.#options.ipfs.block(id, signal);
  }

  /** Lets go of CIDs that no message and no archive keeps, and of what was left half done. Throws the first failure, at the end. @returns how many */
  async sweep(): Promise<number> {
    const { db, ipfs, now, graceMs } = this.#options;
    const beforeMs = now() - graceMs;
    const { rows } = await sql<{ hash: string }>`
      select hash from files f where length(hash) <> 64 and stored_at < to_timestamp(${beforeMs}::float8 / 1000)
        and ${unkept} order by stored_at limit ${FORGOTTEN_PER_ROUND}`.execute(db);
    const { failures } = await letGoOfEach(
      rows.map(({ hash }) => hash),
      async (hash) => {
        using _claim = await this.#claims.take(hash as ItemHash);
        if (await this.#forget(hash, beforeMs)) await ipfs.unpin(parseCid(hash), beforeMs);
      },
    );
    await ipfs.tidy(beforeMs);
    if (failures.length > 0) throw failures[0];
    return rows.length;
  }

  /** Under the lock of those who write messages: none can keep it meanwhile. What another process is taking in again stays. */
  #forget(hash: string, beforeMs: number): Promise<boolean> {
    return this.#options.db.transaction().execute(async (trx) => {
      await lockWrites(trx);
      const { numAffectedRows } = await sql`
        delete from files f where hash = ${hash} and stored_at < to_timestamp(${beforeMs}::float8 / 1000)
          and ${unkept}
          and not exists (select from ipfs_dags where root = f.hash and touched_ms >= ${beforeMs})`.execute(
        trx,
      );
      return (numAffectedRows ?? 0n) > 0n;
    });
  }

  async #typeOf(node: IpfsNode, signal: AbortSignal): Promise<string> {
    if (node.kind === 'directory') return DIRECTORY_TYPE;
    if (node.sizeBytes === 0) return sniffType(new Uint8Array());
    const last = Math.min(SNIFFED_BYTES, node.sizeBytes) - 1;
    return sniffType(await buffer(await this.#options.ipfs.read(node.id, { first: 0, last }, signal)));
  }

  async #note({ id, sizeBytes, contentType }: KeptNode, signal: AbortSignal): Promise<void> {
    const { ipfs, pipeline, now } = this.#options;
    const mayBeContent = contentType === JSON_TYPE && sizeBytes <= LIMITS.contentFileBytes;
    const bytes = mayBeContent ? await buffer(await ipfs.read(id, undefined, signal)) : undefined;
    await pipeline.touch([fileKey(id.text)], async (trx) => {
      await sql`
        insert into files (hash, size_bytes, content_type, stored_at)
        values (${id.text}, ${sizeBytes}, ${contentType}, to_timestamp(${now()}::float8 / 1000))
        on conflict (hash) do update set stored_at = greatest(excluded.stored_at, files.stored_at)`.execute(
        trx,
      );
      if (bytes)
        await sql`insert into ipfs_contents (hash, bytes) values (${id.text}, ${bytes}) on conflict do nothing`.execute(
          trx,
        );
    });
  }
}

/** Of a row `f` of files. */
const unkept = sql`not exists (select from file_pins where file_hash = f.hash)
  and not exists (select from anchor_events a where a.cid = f.hash and a.state <> 'refused')
  and not exists (select from packed_archives p where p.cid = f.hash and not p.settled)`;

/** Rounds of `sweep` until it is disposed of. */
export function startIpfsUpkeep(
  files: IpfsFiles,
  { signal, log }: { signal: AbortSignal; log: Logger },
): AsyncDisposable {
  const stop = new AbortController();
  const ended = runLoop(
    { name: 'ipfs upkeep', intervalMs: UPKEEP_MS, signal: AbortSignal.any([signal, stop.signal]), log },
    async () => void (await files.sweep()),
  );
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}
