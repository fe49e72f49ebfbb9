import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { backoffMs } from '@skerry/kit';
import { isCid, isItemHash64 } from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { fileKeyOf, fileOf, fileOfIn, isFileKeyIn } from '../dependency-keys.ts';
import type { Schema } from '../schema.ts';
import { LACKED_CODES } from './wanted.ts';

/** Rejected messages that one round looks at. */
const EXAMINED = 1_000;
/** Files that are still to be asked for when the next messages are looked at. */
const NAMES_LEFT = 100;
/** From the end of one pass through all of them to the next: longer each time that nothing came. */
const REST_BASE_MS = 300_000;
const REST_MAX_MS = 4 * 3_600_000;
/**
 * Files of a pass that nobody turns out to have. After so many of one sender its others wait for the next pass, and after so many of all
 * senders the pass ends: keys are free. Peers are asked in vain four times a minute, and a CID may take minutes.
 */
const VAIN_MAX = { hash: { ofSender: 20, ofPass: 240 }, cid: { ofSender: 4, ofPass: 24 } } as const;
/** Senders that are known of one file. */
const SENDERS_MAX = 1_000;
/** A pass that begins anywhere begins in the last part of all time: all of it, half of it, and so on to one in 2 to this power. */
const HALVINGS = 16;

const NEWEST = { time: Number.POSITIVE_INFINITY, hash: '' } as const;

/** The condition on the hash is for the index (messages_by_status). */
export const IS_REJECTED = sql`status = 'rejected' and item_hash <> 'messages_by_status'`;
/** What it said was erased, and may have been a file (messages_wanted). */
const isWanted = sql`erased = 'wanted' and form = 'network'`;

/** Messages that may lack files, and their times: of one whose text is wanted, since when it is. */
const SORTS = [
  {
    which: IS_REJECTED,
    time: sql`"time"`,
    lacks: sql`coalesce(reason ->> 'code' = any(${LACKED_CODES}::text[]), false)`,
  },
  { which: isWanted, time: sql`(settled_at_ms::float8 / 1000)`, lacks: sql`true` },
] as const;

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
  /** As VAIN_MAX has them, which is so by default. */
  readonly vainMax?: { readonly ofSender: number; readonly ofPass: number };
}

interface Place {
  readonly time: number;
  readonly hash: string;
}

interface Lacking {
  readonly sender: string;
  readonly name: string;
}

interface Page {
  /** Senders take turns. */
  readonly lacking: readonly Lacking[];
  /** The last message; undefined where there are no more. */
  readonly last: Place | undefined;
}

/**
 * Files that messages lacked for too long, for which they were rejected, and contents that were erased and that no FORGET in force names
 * any more. They are looked for behind all others (fetcher.ts, and
 * store/ipfs/fetcher.ts), since it was perhaps this node that could not get them: when one comes, its messages are decided again. Goes
 * back through the rejected messages in passes, and asks for each file once in a pass. Every second pass begins anywhere: whoever keeps
 * sending names that nobody has keeps none of before from being asked for.
 */
export class MissedFiles {
  readonly #options: MissedFilesOptions;
  /** And who named them. */
  readonly #names = new Map<string, Set<string>>();
  /** Undefined: a pass is to begin. */
  #place: Place | undefined;
  #passes = 0;
  /** Files of this pass that nobody had, in all and of each sender. */
  #vainInPass = 0;
  readonly #vainOf = new Map<string, number>();
  /** Passes in a row in which nothing came. */
  #vain = 0;
  #nextPassMs = 0;
  /** Whether it was woken since the last pass that began with the newest did so: the next one follows at once. */
  #isWoken = false;
  #wasFull = false;
  /** As of the last pass that began with the newest. */
  #newestWanted = 0;
  /** When the last round was, by the node's clock. */
  #roundMs = 0;

  constructor(options: MissedFilesOptions) {
    this.#options = options;
  }

  /** Those that are to be asked for now. */
  get names(): readonly string[] {
    return [...this.#names.keys()];
  }

  /** One round. @returns whether the next one may follow at once */
  async round(): Promise<boolean> {
    const { now, reserve = BOUNDLESS, random } = this.#options;
    if (!reserve.hasRoom) {
      this.#wasFull = true;
      return false;
    }
    const nowMs = now();
    // Where the clock was set back, what it timed is ahead of it: no rest ends when it was to, and nothing is newer than that.
    if (this.#wasFull || nowMs < this.#roundMs) this.wake();
    this.#wasFull = false;
    this.#roundMs = nowMs;
    if (this.#names.size > NAMES_LEFT) return false;
    if (this.#nextPassMs > nowMs) {
      if (!(await this.#hasNews())) return false;
      this.wake();
    }
    const { lacking, last } = await this.#readPage(this.#place ?? (await this.#begin()));
    for (const one of lacking) this.#want(one);
    this.#place = last;
    if (last) return this.#names.size <= NAMES_LEFT;
    this.#vain++;
    const waitMs = this.#isWoken ? 0 : backoffMs(this.#vain, REST_BASE_MS, REST_MAX_MS, random?.());
    this.#nextPassMs = now() + waitMs;
    return false;
  }

  /** A file was asked for. */
  note(name: string, isHere: boolean): void {
    const senders = this.#names.get(name);
    if (!this.#names.delete(name) || !senders) return;
    if (!isHere) {
      this.#noteVain([...senders]);
      return;
    }
    // Where one came, others may.
    this.#vain = 0;
    this.#nextPassMs = Math.min(this.#nextPassMs, this.#options.now() + REST_BASE_MS);
  }

  /** A file is not asked for in this pass, and counts for nothing. */
  skip(name: string): void {
    this.#names.delete(name);
  }

  /** What could not be had before may be had now, such as from a source that answers again. */
  wake(): void {
    this.#vain = 0;
    this.#nextPassMs = 0;
    this.#isWoken = true;
  }

  get #vainMax(): { readonly ofSender: number; readonly ofPass: number } {
    const { namedBy, vainMax = VAIN_MAX[namedBy] } = this.#options;
    return vainMax;
  }

  #isSpent(sender: string): boolean {
    return (this.#vainOf.get(sender) ?? 0) >= this.#vainMax.ofSender;
  }

  #want({ name, sender }: Lacking): void {
    if (this.#isSpent(sender)) return;
    const senders = this.#names.get(name) ?? new Set();
    this.#names.set(name, senders);
    if (senders.size < SENDERS_MAX) senders.add(sender);
  }

  #noteVain(senders: readonly string[]): void {
    for (const sender of senders) this.#vainOf.set(sender, (this.#vainOf.get(sender) ?? 0) + 1);
    if (++this.#vainInPass >= this.#vainMax.ofPass) {
      // The rest may have its turn in a pass that begins elsewhere.
      this.#names.clear();
      this.#place = undefined;
      this.#nextPassMs = Math.min(this.#nextPassMs, this.#options.now() + REST_BASE_MS);
    } else if (senders.some((sender) => this.#isSpent(sender)))
      for (const [name, by] of this.#names)
        if ([...by].every((sender) => this.#isSpent(sender))) this.#names.delete(name);
  }

  /** Since when the text of a message is wanted that came to be so last, by now: the clock may have been set back since another. */
  async #findNewestWanted(): Promise<number> {
    const { db, now } = this.#options;
    const { rows } = await sql<{ newest: number | null }>`
      select max(settled_at_ms::float8 / 1000) as newest from messages
      where ${isWanted} and settled_at_ms::float8 / 1000 <= ${now() / 1000}::float8`.execute(db);
    return rows[0]!.newest ?? 0;
  }

  /** Whether more came to be wanted since the last pass that began with the newest. */
  async #hasNews(): Promise<boolean> {
    return (await this.#findNewestWanted()) > this.#newestWanted;
  }

  /** Where a pass begins. */
  async #begin(): Promise<Place> {
    const { db, random = Math.random } = this.#options;
    this.#vainInPass = 0;
    this.#vainOf.clear();
    if (this.#passes++ % 2 === 0) {
      this.#isWoken = false;
      this.#newestWanted = await this.#findNewestWanted();
      return NEWEST;
    }
    const ends = SORTS.map(
      ({ which, time }) => sql`select min(${time}), max(${time}) from messages where ${which}`,
    );
    const { rows } = await sql<{ oldest: number | null; newest: number | null }>`
      select min(oldest) as oldest, max(newest) as newest from (${unionOf(ends)}) as ends (oldest, newest)`.execute(
      db,
    );
    const { oldest, newest } = rows[0]!;
    if (oldest === null || newest === null) return NEWEST;
    // Anywhere in a part of any size: one message of long ago would have nearly all passes begin before all others. Each size is as likely,
    // also the whole: what is older than all that somebody filled it with is found, too.
    const part = (newest - oldest) * 2 ** -Math.floor((HALVINGS + 1) * random());
    return { time: newest - part * random(), hash: '' };
  }

  async #readPage({ time, hash }: Place): Promise<Page> {
    const { db, namedBy, examined = EXAMINED } = this.#options;
    const parts = SORTS.flatMap(({ which, time: at, lacks }) => {
      const all = sql`select item_hash, ${at} as "time", sender, ${lacks} as lacks, ${sql.lit(which === isWanted)} as is_wanted from messages where ${which}`;
      // Of one time there may be any number.
      return [
        sql`(${all} and ${at} = ${time}::float8 and item_hash > ${hash} order by item_hash limit ${examined})`,
        sql`(${all} and ${at} < ${time}::float8 order by ${at} desc, item_hash limit ${examined})`,
      ];
    });
    const { rows } = await sql<Place & { keys: string[]; sender: string }>`
      with page as materialized (
        select * from (${unionOf(parts)}) as parts order by "time" desc, item_hash limit ${examined})
      select item_hash as hash, "time", sender, array(
        select d.key from dependencies d where d.item_hash = page.item_hash and ${isFileKeyIn('d.key')} and page.lacks
          and (not page.is_wanted or d.key = ${fileKeyOf('page.item_hash')})
          and not exists (select from files where files.hash = ${fileOfIn('d.key')})) as keys
      from page order by "time" desc, item_hash`.execute(db);
    const lacking = rows.flatMap(({ sender, keys }) =>
      keys.map((key) => ({ sender, name: fileOf(key) })).filter(({ name }) => NAMED_BY[namedBy](name)),
    );
    return { lacking: inTurns(lacking), last: rows.length < examined ? undefined : rows.at(-1) };
  }
}

const unionOf = (parts: readonly RawBuilder<unknown>[]) => sql.join(parts, sql` union all `);

/** An order in which senders take turns: however many files one of them names, only its own wait for them. */
function inTurns(lacking: readonly Lacking[]): Lacking[] {
  const counts = new Map<string, number>();
  const turned = lacking.map((one) => {
    const turn = counts.get(one.sender) ?? 0;
    counts.set(one.sender, turn + 1);
    return { one, turn };
  });
  return turned.sort((a, b) => a.turn - b.turn).map(({ one }) => one);
}
