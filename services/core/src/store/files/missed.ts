import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { backoffMs } from '@skerry/kit';
import { isCid, isItemHash64 } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { fileOf, isFileKeyIn } from '../dependency-keys.ts';
import type { Schema } from '../schema.ts';
import { LACKED_CODES } from './wanted.ts';

/** Rejected messages that one round looks at. */
const EXAMINED = 1_000;
/** Files that are still to be asked for when the next messages are looked at. */
const NAMES_LEFT = 100;
/** From the end of one pass through all of them to the next: longer each time that nothing came. */
const REST_BASE_MS = 300_000;
const REST_MAX_MS = 4 * 3_600_000;

/** The first messages of a pass are the newest. */
const NEWEST = { time: Number.POSITIVE_INFINITY, hash: '' } as const;

/** What files are named by: SHA-256 those of peers, CIDs those of IPFS. */
const NAMED_BY = { hash: isItemHash64, cid: isCid } as const;

export interface MissedFilesOptions {
  readonly db: Kysely<Schema>;
  readonly namedBy: 'hash' | 'cid';
  readonly reserve?: Pick<DiskReserve, 'hasRoom'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random?: () => number;
  /** Rejected messages that one round looks at; EXAMINED by default. */
  readonly examined?: number;
}

interface Place {
  readonly time: number;
  readonly hash: string;
}

interface Page {
  /** Senders take turns. */
  readonly names: readonly string[];
  /** The last message; undefined where there are no more. */
  readonly last: Place | undefined;
}

/**
 * Files that messages lacked for too long, for which they were rejected. They are looked for behind all others (fetcher.ts, and
 * store/ipfs/fetcher.ts), since it was perhaps this node that could not get them: when one comes, its messages are decided again. Goes
 * through all rejected messages, the newest first, and asks for each file once in a pass.
 */
export class MissedFiles {
  readonly #options: MissedFilesOptions;
  readonly #names = new Set<string>();
  #place: Place = NEWEST;
  /** Passes in a row in which nothing came. */
  #vain = 0;
  #nextPassMs = 0;
  /** Whether it was woken during this pass: the next one follows at once. */
  #isWoken = false;
  #wasFull = false;

  constructor(options: MissedFilesOptions) {
    this.#options = options;
  }

  /** Those that are to be asked for now. */
  get names(): readonly string[] {
    return [...this.#names];
  }

  /** One round. @returns whether the next one may follow at once */
  async round(): Promise<boolean> {
    const { now, reserve = BOUNDLESS, random } = this.#options;
    if (!reserve.hasRoom) {
      this.#wasFull = true;
      return false;
    }
    if (this.#wasFull) this.wake();
    this.#wasFull = false;
    const restMs = this.#nextPassMs - now();
    // Longer than any rest: the clock has been set back since.
    const isResting = restMs > 0 && restMs <= REST_MAX_MS;
    if (isResting || this.#names.size > NAMES_LEFT) return false;
    if (this.#place === NEWEST) this.#isWoken = false;
    const { names, last } = await this.#readPage();
    for (const name of names) this.#names.add(name);
    this.#place = last ?? NEWEST;
    if (last) return this.#names.size <= NAMES_LEFT;
    this.#vain++;
    const waitMs = this.#isWoken ? 0 : backoffMs(this.#vain, REST_BASE_MS, REST_MAX_MS, random?.());
    this.#nextPassMs = now() + waitMs;
    return false;
  }

  /** A file was asked for. */
  note(name: string, isHere: boolean): void {
    if (!this.#names.delete(name) || !isHere) return;
    // Where one came, others may.
    this.#vain = 0;
    this.#nextPassMs = Math.min(this.#nextPassMs, this.#options.now() + REST_BASE_MS);
  }

  /** What could not be had before may be had now, such as from a source that answers again. */
  wake(): void {
    this.#vain = 0;
    this.#nextPassMs = 0;
    this.#isWoken = true;
  }

  async #readPage(): Promise<Page> {
    const { db, namedBy, examined = EXAMINED } = this.#options;
    const { time, hash } = this.#place;
    // Of one time there may be any number. What the condition on the hash is for: see the index (messages_by_status).
    const rejected = sql`select item_hash, "time", sender, reason from messages
      where status = 'rejected' and item_hash <> 'messages_by_status'`;
    const { rows } = await sql<Place & { keys: string[]; sender: string }>`
      with page as materialized (
        (${rejected} and "time" = ${time}::float8 and item_hash > ${hash} order by item_hash limit ${examined})
        union all
        (${rejected} and "time" < ${time}::float8 order by "time" desc, item_hash limit ${examined})
        order by "time" desc, item_hash limit ${examined})
      select item_hash as hash, "time", sender, array(
        select d.key from dependencies d where d.item_hash = page.item_hash and ${isFileKeyIn('d.key')}
          and page.reason ->> 'code' = any(${LACKED_CODES}::text[])) as keys
      from page order by "time" desc, item_hash`.execute(db);
    const lacking = rows.flatMap(({ sender, keys }) =>
      keys.map((key) => ({ sender, name: fileOf(key) })).filter(({ name }) => NAMED_BY[namedBy](name)),
    );
    return { names: inTurns(lacking), last: rows.length < examined ? undefined : rows.at(-1) };
  }
}

/** Names in an order in which senders take turns: however many one of them names, only its own wait for them. */
function inTurns(lacking: readonly { readonly sender: string; readonly name: string }[]): string[] {
  const counts = new Map<string, number>();
  const turned = lacking.map(({ sender, name }) => {
    const turn = counts.get(sender) ?? 0;
    counts.set(sender, turn + 1);
    return { name, turn };
  });
  return turned.sort((one, other) => one.turn - other.turn).map(({ name }) => name);
}
