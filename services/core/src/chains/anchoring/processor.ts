import { buffer } from 'node:stream/consumers';
import type { Write } from '@skerry/database';
import { Failures, type Logger, Rests } from '@skerry/kit';
import { AppError, ERRORS, type ErrorCode, LIMITS, verifyUpload } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Intake } from '../../intake/intake.ts';
import { confirmMessages, listNotedAfter } from '../../state/messages/confirmations.ts';
import { parseCid } from '../../store/ipfs/cid.ts';
import { reasonOfTry, retryAfterMs } from '../../store/ipfs/fetcher.ts';
import type { IpfsFiles } from '../../store/ipfs/ipfs-files.ts';
import { IPFS_LIMITS } from '../../store/ipfs/limits.ts';
import type { Schema, VerdictReason } from '../../store/schema.ts';
import { type ArchivedMessage, parseArchive, parseSyncContent } from './archive.ts';
import { ARCHIVE_LIMITS } from './limits.ts';
import { partsOf } from './parts.ts';
import type { AnchorSettings } from './settings.ts';
import {
  type AnchorEvent,
  findUndated,
  isWaiting,
  listWaiting,
  noteDated,
  postponeEvent,
  settleEvent,
} from './store.ts';

export interface ProcessorOptions {
  readonly db: Kysely<Schema>;
  readonly write: Write<Schema>;
  readonly files: IpfsFiles;
  readonly intake: Pick<Intake, 'archive' | 'block'>;
  readonly settings: AnchorSettings;
  readonly now: () => number;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

interface Named {
  readonly itemHash: string;
  readonly sender: string;
}

const LATE_PAGE = { rows: ARCHIVE_LIMITS.together, bytes: ARCHIVE_LIMITS.togetherBytes };

/** What may be otherwise at the next try: whatever is the fault of this node, or of what it needs. */
const mayPass = (code: ErrorCode): boolean =>
  code === 'CID_NOT_FOUND' || ['unavailable', 'internal'].includes(ERRORS[code].kind);

const placeOf = ({ blockNumber, logIndex }: AnchorEvent) => `${blockNumber}:${logIndex}`;

/** A clock that was set ends nothing: the archive was also tried as often as that time has tries. */
const isPast = ({ seenMs, attempts }: AnchorEvent, horizonMs: number, nowMs: number) =>
  nowMs - seenMs > horizonMs && attempts * 1000 * IPFS_LIMITS.retryMaxSeconds > horizonMs;

/** Reads the archives of events that wait, and writes what they confirm. */
export class Processor {
  readonly #options: ProcessorOptions;
  /** Events whose failure could not be noted in the table. */
  readonly #rests: Rests;
  readonly #unforeseen: Failures;
  /** Messages of archives that did not verify. */
  invalid = 0;

  constructor(options: ProcessorOptions) {
    this.#options = options;
    const { log, random } = options;
    this.#rests = new Rests({ random });
    this.#unforeseen = new Failures({ log, what: 'an archive could not be read; retrying', random });
  }

  /** Reads what is due, a few at the same time. @returns whether there may be more at once */
  async round(): Promise<boolean> {
    const { db, settings, now } = this.#options;
    const resting = new Set(this.#rests.list());
    const limit = ARCHIVE_LIMITS.parallel + resting.size;
    const listed = await listWaiting(db, settings.network.name, now(), limit);
    const due = listed.filter((event) => !resting.has(placeOf(event))).slice(0, ARCHIVE_LIMITS.parallel);
    const ended = await Promise.allSettled(due.map((event) => this.#process(event)));
    ended.forEach(({ status }, index) => {
      const place = placeOf(due[index]!);
      if (status === 'rejected') this.#rests.note(place);
      else this.#rests.end(place);
    });
    const failed = ended.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    return due.length > 0;
  }

  /** Looks at the messages of one event that is settled: they were there by its block. @returns whether there may be more at once */
  async date(): Promise<boolean> {
    const { db, write, intake, settings } = this.#options;
    const event = await findUndated(db, settings.network.name);
    if (!event) return false;
    const looked: string[] = [];
    for (;;) {
      const late = await listNotedAfter(db, event, event.blockTime, looked.at(-1) ?? '', LATE_PAGE);
      if (late.length === 0) break;
      await Promise.all(late.map((row) => intake.block.date(row, event.blockTime * 1000)));
      looked.push(...late.map((row) => row.item_hash));
    }
    await write(({ trx }) => noteDated(trx, event, looked));
    return true;
  }

  async #process(event: AnchorEvent): Promise<void> {
    const { db, settings, now, random, signal } = this.#options;
    let messages: readonly ArchivedMessage[] | undefined;
    try {
      messages = await this.#messagesOf(event);
      await this.#read(event, messages);
    } catch (error) {
      if (signal.aborted) return;
      const { isForeseen, code, message } = reasonOfTry(error);
      if (!isForeseen) this.#unforeseen.note(error);
      // What is at hand and was not written is no fault of the archive, unless nobody knows whose fault it is.
      const isAway = messages === undefined;
      if (isAway && isForeseen && !mayPass(code)) {
        const known = code === 'ARCHIVE_NESTED' || code === 'ARCHIVE_INVALID';
        await settleEvent(db, event, { refusal: { code: known ? code : 'ARCHIVE_INVALID', message } });
      } else if ((isAway || !isForeseen) && isPast(event, settings.archiveHorizonMs, now())) {
        await settleEvent(db, event, { refusal: { code: 'ARCHIVE_UNAVAILABLE', message } });
      } else {
        await postponeEvent(db, event, now() + retryAfterMs(event.attempts, random()), { code, message });
      }
    }
  }

  async #read(event: AnchorEvent, messages: readonly ArchivedMessage[]): Promise<void> {
    const { db, write, settings, now, random, log } = this.#options;
    const named: Named[] = [];
    const later: VerdictReason[] = [];
    for await (const part of partsOf(db, messages)) {
      const taken = await Promise.all(part.map((one) => this.#take(one)));
      named.push(...taken.flatMap((one) => (one && 'itemHash' in one ? one : [])));
      later.push(...taken.flatMap((one) => (one && 'code' in one ? one : [])));
    }
    const confirmation = {
      chain: settings.chain,
      height: event.blockNumber,
      hash: event.transactionHash,
    };
    const [first] = later;
    await write(async (writer) => {
      const isWritten = await confirmMessages(writer, event, confirmation, named, {
        isCurrent: (trx) => isWaiting(trx, event),
        nowMs: now(),
      });
      if (!isWritten) return;
      if (!first || isPast(event, settings.archiveHorizonMs, now()))
        return settleEvent(writer.trx, event, { messages: named.length });
      const dueMs = now() + retryAfterMs(event.attempts, random());
      await postponeEvent(writer.trx, event, dueMs, {
        code: first.code,
        message: `${later.length} of its messages cannot be taken yet: ${first.message}`,
        later: later.length,
      });
    });
    const counted = { block: event.blockNumber, cid: event.cid, messages: named.length };
    const invalid = messages.length - named.length - later.length;
    log.debug({ ...counted, later: later.length, invalid }, 'read an archive');
  }

  async #messagesOf({ cid, content }: AnchorEvent): Promise<readonly ArchivedMessage[]> {
    if (cid === null) return parseSyncContent(content).messages ?? [];
    const { files, signal: stop } = this.#options;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(ARCHIVE_LIMITS.tryMs)]);
    const id = parseCid(cid);
    const node = await files.pin(id, { limitBytes: 2 * ARCHIVE_LIMITS.readBytes, signal });
    if (node.kind !== 'file') throw new AppError('ARCHIVE_INVALID', `${cid} is a directory`);
    if (node.sizeBytes > ARCHIVE_LIMITS.readBytes)
      throw new AppError('ARCHIVE_INVALID', `an archive is limited to ${ARCHIVE_LIMITS.readBytes} bytes`);
    const file = await files.open(id, [], signal);
    return parseArchive(file.kind === 'file' ? await buffer(await file.open()) : Buffer.alloc(0));
  }

  /**
   * Puts an archived message before the node as if a client had sent it. Undefined where it never verifies; a reason where it cannot
   * be taken now, which holds up none of the others.
   */
  async #take(archived: ArchivedMessage): Promise<Named | VerdictReason | undefined> {
    try {
      // An upload's message is confirmed where it is known: who has the file makes it.
      return archived.kind === 'upload'
        ? verifyUpload(archived.fileHash, archived)
        : await this.#submit(archived.body);
    } catch (error) {
      if (this.#options.signal.aborted) throw error;
      const { isForeseen, code, message } = reasonOfTry(error);
      if (!isForeseen) this.#unforeseen.note(error);
      if (!isForeseen || mayPass(code) || code === 'TIMESTAMP_IN_FUTURE') return { code, message };
      this.invalid++;
      return undefined;
    }
  }

  async #submit(body: Buffer): Promise<Named> {
    if (body.length > LIMITS.jsonBodyBytes) throw new AppError('BODY_TOO_LARGE', 'a message is too large');
    const { message } = await this.#options.intake.archive.submit(body);
    return { itemHash: message.itemHash, sender: message.sender };
  }
}
