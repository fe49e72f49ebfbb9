import { Readable } from 'node:stream';
import type { Logger } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { IpfsFiles } from '../../store/ipfs/ipfs-files.ts';
import type { Schema } from '../../store/schema.ts';
import { archivedTextOf, archiveOf, syncContentOf } from './archive.ts';
import type { Emitter } from './emitter.ts';
import { ARCHIVE_LIMITS } from './limits.ts';
import {
  listOpen,
  listUnconfirmed,
  loadPackedSeq,
  notePacked,
  noteSent,
  type PackedArchive,
  type PackedPart,
  settlePacked,
} from './packed.ts';
import { decidePlace } from './place.ts';
import type { PackingSettings } from './settings.ts';
import { loadFollowed } from './store.ts';
import { PackedTally } from './tally.ts';

/** Events of the log in one look. */
const LOOK_EVENTS = 500;
/** Looks of one archive: a log that tells of little else than messages does not hold a round up for long. */
const LOOKS_MAX = 400;
/** A replacement pays an eighth more, or nodes do not take it. */
const RAISE_DIVISOR = 8n;

export interface PackerOptions {
  readonly db: Kysely<Schema>;
  readonly files: IpfsFiles;
  readonly emitter: Pick<Emitter, 'look' | 'prepare' | 'send'>;
  readonly network: string;
  readonly settings: PackingSettings;
  /** Whether the contract is read as far as there may be archives of this node on it (catch-up.ts). */
  readonly isCaughtUp: () => boolean;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * Packs messages in force that nothing confirms into archives and puts them on the chain, one archive after another. What
 * a reorganisation takes off the chain is sent again. Every step is noted before it is taken: a crash repeats it at most.
 */
export class Packer {
  readonly #options: PackerOptions;
  readonly #tally = new PackedTally();
  #packedMs = 0;

  constructor(options: PackerOptions) {
    this.#options = options;
  }

  /** Looks at archives under way; makes one where none is. Does nothing before it is caught up. Throws UPSTREAM_UNAVAILABLE. */
  async round(): Promise<void> {
    const { db, network, settings, isCaughtUp, now } = this.#options;
    if (!isCaughtUp()) return;
    const { settledBlock } = await loadFollowed(db, network);
    const listed = await listOpen(db, network);
    const maySettle = listed.some(({ block }) => block !== null && block <= settledBlock);
    if (maySettle) await settlePacked(db, network, settledBlock);
    const open = maySettle ? await listOpen(db, network) : listed;
    await this.#sendAll(open);
    // Until the last one is read, what it confirms would be packed again.
    if (open.some(({ isRead }) => !isRead) || Math.abs(now() - this.#packedMs) < settings.intervalMs) return;
    if (await this.#pack()) this.#packedMs = now();
  }

  /** @returns whether an archive was made */
  async #pack(): Promise<boolean> {
    const { db, files, network, now, signal, log } = this.#options;
    const { texts, after, seq } = await this.#gather();
    if (texts.length === 0) {
      if (seq > after) await notePacked(db, network, { after, seq }, undefined, now());
      return false;
    }
    const bytes = archiveOf(texts);
    const { id } = await files.add(Readable.from([bytes]), {
      cidVersion: 0,
      limitBytes: ARCHIVE_LIMITS.readBytes,
      signal,
    });
    const archive = { cid: id.text, messages: texts.length };
    // A process that was frozen may believe for a moment that it leads: what another one has packed is not packed twice.
    if (!(await notePacked(db, network, { after, seq }, archive, now()))) return false;
    log.debug({ network, cid: id.text, messages: texts.length, bytes: bytes.length }, 'created an archive');
    const packed = this.#tally.add(texts.length, now());
    if (packed) log.info({ network, ...packed, cid: id.text }, 'packed messages into archives');
    await this.#sendAll(await listOpen(db, network));
    return true;
  }

  /** Messages for one archive, and how far the log was looked at. */
  async #gather(): Promise<PackedPart & { readonly texts: string[] }> {
    const { db, network, settings } = this.#options;
    const { last_seq: upTo } = await db
      .selectFrom('event_counter')
      .select('last_seq')
      .executeTakeFirstOrThrow();
    const after = await loadPackedSeq(db, network);
    let seq = after;
    const texts = new Map<string, string>();
    let bytes = 0;
    for (let look = 0; look < LOOKS_MAX && seq < upTo; look++) {
      const rows = await listUnconfirmed(db, seq, upTo, {
        events: LOOK_EVENTS,
        bytes: ARCHIVE_LIMITS.madeBytes - bytes,
      });
      if (rows.length === 0) break;
      for (const row of rows) {
        if (row.item_hash !== null && !texts.has(row.item_hash)) {
          const text = archivedTextOf(row);
          bytes += Buffer.byteLength(text);
          if (texts.size >= settings.messagesMax || (bytes > ARCHIVE_LIMITS.madeBytes && texts.size > 0))
            return { texts: [...texts.values()], after, seq };
          texts.set(row.item_hash, text);
        }
        seq = row.seq;
      }
    }
    return { texts: [...texts.values()], after, seq };
  }

  /** Sends what is in no block. Each archive keeps clear of the nonces of the others. */
  async #sendAll(open: readonly PackedArchive[]): Promise<void> {
    const nonces = new Map(open.flatMap(({ id, nonce }) => (nonce === null ? [] : [[id, nonce] as const])));
    for (const archive of open) {
      if (archive.block !== null) continue;
      const others = new Set([...nonces].flatMap(([id, nonce]) => (id === archive.id ? [] : [nonce])));
      const nonce = await this.#send(archive, others);
      if (nonce !== undefined) nonces.set(archive.id, nonce);
    }
  }

  /** Sends an archive that is in no block, at first or again. @returns the nonce that it was sent with */
  async #send(archive: PackedArchive, others: ReadonlySet<number>): Promise<number | undefined> {
    const { db, emitter, settings, now, network, log } = this.#options;
    const { cid, transactionHash, nonce, maxFee, sentMs } = archive;
    // A clock that was set back holds nothing up.
    if (sentMs !== null && Math.abs(now() - sentMs) < settings.resendMs) return undefined;
    const place = decidePlace(nonce, others, await emitter.look(transactionHash));
    if (!place) return undefined;
    const minimumFee =
      place.isTaken && maxFee !== null ? BigInt(maxFee) + BigInt(maxFee) / RAISE_DIVISOR + 1n : 0n;
    const made = await emitter.prepare(syncContentOf(cid), { minimumFee, nonce: place.nonce });
    if (!(await noteSent(db, archive, made, now()))) return undefined;
    await emitter.send(made.raw);
    const fields = { network, cid, transaction: made.hash };
    if (archive.sends > 0)
      log.info({ ...fields, sends: archive.sends + 1 }, 'sent an archive to the chain again');
    else log.debug(fields, 'sent an archive to the chain');
    return made.nonce;
  }
}
