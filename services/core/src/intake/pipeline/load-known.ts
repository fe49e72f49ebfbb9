import { prepared, textsOf } from '@skerry/database';
import type { MessageStatus, SyncFields, SyncKey } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import { MESSAGE_OF_KEY } from '../../store/messages-by-key.ts';
import type { Schema } from '../../store/schema.ts';
import { type Accepted, isRead } from '../accepted.ts';
import type { Candidate } from './decided.ts';
import {
  fieldsOfRow,
  forgottenKeyOfRow,
  type HeadColumns,
  isAmongForgotten,
  type KeyColumns,
  keyOfRow,
} from './statement.ts';

/** A message as it is kept, as far as whoever brings it again is concerned. */
export interface Known {
  readonly sender: string;
  /** On whose behalf it speaks. */
  readonly owner: string;
  readonly status: MessageStatus;
  readonly shape: number | null;
  readonly decideByMs: number;
  /** Whether what it says was read, as its sender signed it. */
  readonly isRead: boolean;
  readonly erased: KeyColumns['erased'];
  readonly fields: SyncFields;
  readonly key: SyncKey;
  /** What judges a FORGET of it, and among the forgotten its key; null where it is none of them. */
  readonly head: HeadColumns;
  readonly forgottenKey: SyncKey | null;
}

/** What is there of the batch's messages already, by item hash. */
export interface Kept {
  readonly known: ReadonlyMap<string, Known>;
  /** FORGET messages of each, also of those that are not known: the first few. */
  readonly forgottenBy: ReadonlyMap<string, readonly string[]>;
}

/** More are not told: anyone may forget a thousand messages of theirs any number of times. */
const FORGETTING_TOLD = 4;

/**
 * Whether what a message `m` says was read, as `isRead` and `isJudged` find it (accepted.ts), and was not erased. Only the network form
 * has contents that are read from files and not kept.
 */
export const IS_READ = sql<boolean>`(m.content is not null or m.source_text is not null
  or coalesce(m.erased is null and m.form = 'network' and m.status = 'rejected' and m.reason ->> 'code' <> 'CONTENT_NOT_FOUND', false))`;

type Row = Omit<KeyColumns & HeadColumns, 'item_hash'> & {
  status: MessageStatus;
  shape: number | null;
  decide_by_ms: number;
  is_read: boolean;
};
/** Columns of messages are all null where only FORGETs are there. */
type Found = { item_hash: string; forgotten_by: string[] } & (Row | { [Column in keyof Row]: null });

function knownOf({ item_hash, ...row }: Found & Row): Known {
  const columns = { item_hash, ...row };
  const { sender, owner, status, shape, decide_by_ms: decideByMs, is_read: isRead, erased } = row;
  const [fields, key] = [fieldsOfRow(columns), keyOfRow(columns)];
  const forgottenKey = isAmongForgotten(row) ? forgottenKeyOfRow(columns) : null;
  return {
    ...{ sender, owner, status, shape, decideByMs, isRead, erased, fields, key },
    ...{ head: columns, forgottenKey },
  };
}

/** Whether it is forgotten, or what it said is erased. If it comes back it may lack a file that went meanwhile, and has its whole time anew. */
export const isGone = ({ status, erased }: Pick<Known, 'status' | 'erased'>): boolean =>
  status === 'forgotten' || erased !== null;

/** Who signed it was checked as it came, without its text (erased.ts). Of an envelope nobody can tell. */
const isProven = ({ form }: Pick<SyncFields, 'form'>) => form !== 'envelope';

/**
 * A word of a peer against what its sender signed: it counts for nothing. Nor does it say who that was, unless that is signed: what is kept
 * may be the only copy.
 */
export const isOutsaid = (
  { isSkeleton = false, message }: Accepted,
  { isRead, sender, fields }: Known,
): boolean =>
  isSkeleton && (isRead || (!isProven(message) && (isProven(fields) || message.sender !== sender)));

/**
 * The other way round: of the same sender the proof takes the place of a peer's word alone. Not of another one: anybody can sign any hash
 * with a key of their own.
 */
export const isOutsaying = (
  { isSkeleton = false, message }: Accepted,
  { isRead, sender, erased, fields }: Known,
): boolean =>
  isSkeleton &&
  isProven(message) &&
  message.sender === sender &&
  !isRead &&
  erased !== null &&
  !isProven(fields);

/** Of the two forms that tell it beside what was signed, a channel is the word of whoever passes it on, and of an upload also its time. */
const COVERED = {
  envelope: ['owner', 'type', 'content_type', 'subject', 'channel', 'time'],
  network: ['owner', 'type', 'content_type', 'subject', 'time'],
  upload: ['owner', 'type', 'content_type', 'subject'],
} as const satisfies Record<string, readonly (keyof HeadColumns)[]>;

/** Whether what a message says of itself, as its sender signed it, is otherwise told of it here. */
export function tellsOtherwise(
  { message, owner, contentType, subject }: Accepted,
  { sender, head }: Known,
): boolean {
  if (sender !== message.sender) return true;
  const { form, type, channel, time } = message;
  const said = { owner, type, content_type: contentType, subject, channel, time };
  return COVERED[form].some((name) => said[name] !== head[name]);
}

/**
 * Whether a message that was signed and read tells otherwise of itself than what is left of it here, which came as the word of a peer, or
 * was refused, maybe by that word: the text is the proof, whatever FORGETs the word had for itself.
 */
export const isDisproving = (accepted: Accepted, known: Known): boolean =>
  !accepted.isSkeleton &&
  isRead(accepted.message) &&
  !known.isRead &&
  known.erased !== null &&
  (known.status === 'rejected' || tellsOtherwise(accepted, known));

const isKnown = (row: Found): row is Found & Row => row.status !== null;

export async function loadKept(trx: Transaction<Schema>, batch: readonly Candidate[]): Promise<Kept> {
  const hashes = batch.map(({ accepted }) => accepted.message.itemHash);
  const { rows } = await sql<Found>`${prepared(hashes)}
    select k.item_hash, form, sender, owner, type, content_type, subject, channel, "time", sent_time, tags, noted_ms, erased, status, shape, decide_by_ms,
      ${IS_READ} as is_read,
      array(select forget_hash from forgets where target = k.item_hash order by forget_hash limit ${sql.lit(FORGETTING_TOLD)}) as forgotten_by
    from unnest(${textsOf(hashes)}) as k (item_hash)
    left join ${MESSAGE_OF_KEY}
    where m.item_hash is not null or exists (select from forgets where target = k.item_hash)`.execute(trx);
  return {
    known: new Map(rows.filter(isKnown).map((row) => [row.item_hash, knownOf(row)])),
    forgottenBy: new Map(rows.map(({ item_hash, forgotten_by }) => [item_hash, forgotten_by])),
  };
}
