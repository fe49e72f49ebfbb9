import { AppError, createParser } from '@skerry/protocol/forms';
import { type Static, Type } from '@skerry/protocol/type';

/** The first member of a backup: what it is. */
export const HEAD_PATH = 'skerry-backup.json';
/** The last member: that it is whole. */
export const END_PATH = 'skerry-backup-end.json';
/** Sums of the members since the last such member, as sha256sum writes them. */
export const SUMS_PATH = /^sums\/[0-9]{6}$/;
export const sumsPath = (number: number): string => `sums/${String(number).padStart(6, '0')}`;
/** Files of the data directory. */
export const DATA_PREFIX = 'data/';
/** The settings, and files elsewhere that they name. */
export const SETTINGS_PREFIX = 'settings/';

export const FORMAT = 1;

/** Of the head, the end and one list of sums. */
export const DOCUMENT_BYTES_MAX = 2 * 1024 * 1024;

const Head = Type.Object({
  format: Type.Integer(),
  role: Type.String(),
  /** Of the release that made it. */
  version: Type.String(),
  made_at: Type.String(),
  /** What the network knows the node by. */
  address: Type.Union([Type.String(), Type.Null()]),
  data_dir: Type.String(),
  /** Kinds of files in it. */
  holds: Type.Array(Type.String()),
  /** What is not in it, and how to save that. */
  absent: Type.Array(Type.String()),
});
export type BackupHead = Static<typeof Head>;

const DatabaseFacts = Type.Object({
  /** Every event up to this one is in it. */
  event_cursor: Type.String(),
  /** Of the node's state at that event, as `/state/digest` tells it. */
  messages: Type.Object({ count: Type.Integer(), digest: Type.String() }),
  migrations: Type.Integer(),
});
export type DatabaseFacts = Static<typeof DatabaseFacts>;

const End = Type.Object({
  finished_at: Type.String(),
  members: Type.Integer(),
  bytes: Type.Integer(),
  /** Of all lists of sums, one after another. */
  sums_sha256: Type.String(),
  database: Type.Union([DatabaseFacts, Type.Null()]),
});
export type BackupEnd = Static<typeof End>;

const parseHeadForm = createParser(Head, HEAD_PATH, 'BACKUP_DAMAGED');
const parseEndForm = createParser(End, END_PATH, 'BACKUP_DAMAGED');

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new AppError('BACKUP_DAMAGED', `the backup is damaged: ${what} is not JSON`, { cause });
  }
}

export const parseEnd = (text: string): BackupEnd => parseEndForm(parseJson(text, END_PATH));

/** Throws BACKUP_UNFIT for a form that only newer releases know. */
export function parseHead(text: string): BackupHead {
  const value = parseJson(text, HEAD_PATH) as { format?: unknown } | null;
  if (typeof value?.format === 'number' && value.format > FORMAT)
    throw new AppError('BACKUP_UNFIT', `the backup has format ${value.format}; this release reads ${FORMAT}`);
  return parseHeadForm(value);
}
