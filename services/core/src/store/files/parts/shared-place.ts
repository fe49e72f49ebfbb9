import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';
import type { Begun, PartsPlace } from './place.ts';

/** Small objects in a store that all processes of the node reach. */
export interface Pieces {
  /** Throws STORAGE_FULL, STORAGE_UNAVAILABLE. */
  put(key: string, chunks: readonly Buffer[]): Promise<void>;
  /** Undefined where there is none. Throws STORAGE_UNAVAILABLE. */
  read(key: string): Promise<AsyncIterable<Buffer> | undefined>;
  /** Harmless where there is none. Throws STORAGE_UNAVAILABLE. */
  remove(key: string): Promise<void>;
}

/** Of a file that comes, so much is in memory, and is lost with its process. */
const PIECE_BYTES = 4 * 1024 * 1024;
/** Of one file: three times as many as the largest needs. Each part that ends early leaves a smaller one. */
const PIECES_MAX = 4_096;
const RETRY_AFTER_SECONDS = 10;
/** Whoever sent the last part waits for it. */
const REMOVED_AT_ONCE = 16;
/** Pieces of files that are gone, looked for whenever a part begins. */
const LEFT_OVER_MAX = 100;

/** Chunks put together until they are worth an object. What came before the source fails comes out before it is told. */
async function* gather(source: AsyncIterable<Buffer>, pieceBytes: number): AsyncGenerator<readonly Buffer[]> {
  let chunks: Buffer[] = [];
  let bytes = 0;
  let failure: { readonly error: unknown } | undefined;
  try {
    for await (const chunk of source) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < pieceBytes) continue;
      yield chunks;
      [chunks, bytes] = [[], 0];
    }
  } catch (error) {
    failure = { error };
  }
  if (bytes > 0) yield chunks;
  if (failure) throw failure.error;
}

const bytesOf = (chunks: readonly Buffer[]) => chunks.reduce((sum, { length }) => sum + length, 0);

export interface SharedPlaceOptions {
  readonly db: Kysely<Schema>;
  readonly pieces: Pieces;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** PIECE_BYTES by default. */
  readonly pieceBytes?: number;
  /** PIECES_MAX by default. */
  readonly piecesMax?: number;
}

/**
 * Objects of a few mebibytes in the store, and in the database which of them a file is made of, in which order: any process goes on with
 * what another one has begun. A piece is known to the database before it is in the store, so that none is left there unknown.
 */
export class SharedPlace implements PartsPlace {
  readonly #options: SharedPlaceOptions;

  constructor(options: SharedPlaceOptions) {
    this.#options = options;
  }

  async list(): Promise<Begun[]> {
    return this.#options.db
      .selectFrom('files_in_parts')
      .select(['name', 'written_ms as writtenMs', 'received_bytes as receivedBytes'])
      .execute();
  }

  async received(name: string): Promise<number> {
    const begun = await this.#options.db
      .selectFrom('files_in_parts')
      .select('received_bytes')
      .where('name', '=', name)
      .executeTakeFirst();
    return begun?.received_bytes ?? 0;
  }

  async write(name: string, before: number, source: AsyncIterable<Buffer>): Promise<number> {
    const { pieceBytes = PIECE_BYTES, piecesMax = PIECES_MAX } = this.#options;
    const file = await this.#begin(name);
    await this.#removeLeftOver();
    let received = before;
    let count = (await this.#listPieces(file)).length;
    for await (const chunks of gather(source, pieceBytes)) {
      if (++count > piecesMax) {
        await this.remove(name);
        throw new AppError(
          'RATE_LIMITED',
          `a file may come in ${piecesMax} pieces; send it from its beginning, in larger parts`,
          { details: { retry_after: RETRY_AFTER_SECONDS } },
        );
      }
      // Another process went on with it, or removed it: what is there now is what counts.
      if (!(await this.#add(file, received, chunks))) return this.received(name);
      received += bytesOf(chunks);
    }
    return received;
  }

  read(name: string): Readable {
    return Readable.from(this.#readAll(name), { objectMode: false });
  }

  async remove(name: string): Promise<void> {
    const { db } = this.#options;
    const gone = await db
      .deleteFrom('files_in_parts')
      .where('name', '=', name)
      .returning('file')
      .executeTakeFirst();
    if (!gone) return;
    await this.#removePieces(await this.#listPieces(gone.file));
  }

  async *#readAll(name: string): AsyncGenerator<Buffer> {
    const { db, pieces } = this.#options;
    const parts = await db
      .selectFrom('pieces_of_files')
      .innerJoin('files_in_parts', 'files_in_parts.file', 'pieces_of_files.file')
      .select('piece')
      .where('name', '=', name)
      .where('first_byte', 'is not', null)
      .orderBy('first_byte')
      .execute();
    for (const { piece } of parts) {
      const chunks = await pieces.read(piece);
      if (chunks === undefined) {
        // The database was restored to when the object was there: nothing brings it back.
        await this.remove(name);
        throw new AppError('STORAGE_UNAVAILABLE', 'a part of this file is lost; send it from its beginning');
      }
      yield* chunks;
    }
  }

  /** Those that are meant to come among them. */
  #listPieces(file: string): Promise<{ piece: string }[]> {
    return this.#options.db.selectFrom('pieces_of_files').select('piece').where('file', '=', file).execute();
  }

  async #begin(name: string): Promise<string> {
    const { db, now } = this.#options;
    const { file } = await db
      .insertInto('files_in_parts')
      .values({ file: randomUUID(), name, received_bytes: 0, written_ms: now() })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ name }))
      .returning('file')
      .executeTakeFirstOrThrow();
    return file;
  }

  /** Whether it follows what is there: of two processes that add to one file at once, one does. */
  async #add(file: string, firstByte: number, chunks: readonly Buffer[]): Promise<boolean> {
    const { db, pieces, now } = this.#options;
    const piece = randomUUID();
    await db.insertInto('pieces_of_files').values({ piece, file, first_byte: null }).execute();
    await pieces.put(piece, chunks);
    const { rows } = await sql`
      with grown as (
        update files_in_parts set received_bytes = received_bytes + ${bytesOf(chunks)}::bigint, written_ms = ${now()}::bigint
        where file = ${file}::uuid and received_bytes = ${firstByte}::bigint returning file)
      update pieces_of_files p set first_byte = ${firstByte}::bigint from grown
      where p.piece = ${piece}::uuid and p.file = grown.file returning p.piece`.execute(db);
    if (rows.length > 0) return true;
    await this.#removePieces([{ piece }]);
    return false;
  }

  /** From the store first: what the database knows can still be removed. */
  async #removePieces(found: readonly { readonly piece: string }[]): Promise<void> {
    const { db, pieces } = this.#options;
    if (found.length === 0) return;
    for (let at = 0; at < found.length; at += REMOVED_AT_ONCE)
      await Promise.all(found.slice(at, at + REMOVED_AT_ONCE).map(({ piece }) => pieces.remove(piece)));
    const removed = found.map(({ piece }) => piece);
    await db.deleteFrom('pieces_of_files').where('piece', 'in', removed).execute();
  }

  /** Of files whose removal was cut off. */
  async #removeLeftOver(): Promise<void> {
    const { db } = this.#options;
    const { rows } = await sql<{ piece: string }>`
      select piece from pieces_of_files p
      where not exists (select from files_in_parts f where f.file = p.file) limit ${LEFT_OVER_MAX}`.execute(
      db,
    );
    await this.#removePieces(rows);
  }
}
