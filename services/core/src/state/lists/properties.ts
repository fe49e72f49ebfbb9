import { METRICS_POST_TYPES, normaliseAddress, parseMessageHash } from '@skerry/protocol';
import { sql } from 'kysely';
import { MESSAGE_TYPES } from '../../intake/kinds.ts';
import type { RowColumn } from '../../intake/pipeline/row.ts';
import { parseJsonPath } from './json-path.ts';
import { checkType, oneOf } from './parameters.ts';
import type { Filterable, FilterOf, Row } from './property.ts';

/** A column of `messages`: what the message says, or what became of it. */
export type ListColumn = RowColumn | 'status' | 'settled_at_ms';

/** The block that confirms a message first; null where none does. */
const firstBlockOf = (row: Row) => sql`(select min(c.block_number) from confirmations c
  where c.item_hash = ${row('item_hash')} and c.sender = ${row('sender')})`;

/**
 * What message lists are filtered by: everything that lists and totals know of a property follows from its entry here. One
 * more filter is one more entry, and one in the contract (MESSAGE_FILTERS), which says how it is asked for: the compiler
 * compares them, and lists.test.ts asks for a sample. With an index, it is also a row of INDEXES and a migration.
 */
interface Property extends Filterable<ListColumn> {
  /** Totals are kept of each of its values; the letter keeps their labels apart (labels.ts). */
  readonly letter?: string;
  /** All values that there are, where they are few: an index that has the property in the middle merges them. */
  readonly all?: readonly string[];
}

/** As deployed nodes have them: what they stop for want of payment is stopped here without a status of its own. */
const STATUSES = ['processed', 'pending', 'rejected', 'forgotten', 'removing', 'removed'];
const PAYMENT_TYPES = ['hold', 'superfluid', 'credit'];

/** Two names of one thing (docs/decisions.md 11): either finds both. */
const METRICS_TYPES: readonly string[] = METRICS_POST_TYPES;
export const withSecondName = (type: string) => (METRICS_TYPES.includes(type) ? METRICS_TYPES : type);

export const PROPERTIES = {
  addresses: {
    column: 'sender',
    letter: 's',
    each: normaliseAddress,
  },
  owners: {
    column: 'owner',
    each: normaliseAddress,
  },
  types: {
    column: 'type',
    letter: 't',
    all: MESSAGE_TYPES,
    each: checkType,
  },
  channels: {
    column: 'channel',
    letter: 'c',
  },
  chains: {
    column: 'chain',
  },
  contentTypes: {
    column: 'content_type',
    letter: 'p',
    each: withSecondName,
  },
  /** What the messages speak of (intake/accepted.ts). */
  subjects: {
    column: 'subject',
  },
  /** `content.ref`, where contents have one. */
  refs: {
    column: 'subject',
    at: (row) => sql`case ${row('type')} when 'POST' then ${row('subject')}
      when 'STORE' then ${row('content')} ->> 'ref' end`,
  },
  /** The three that follow are said by types and subjects where that can be (filter.ts). */
  fileHashes: {
    column: 'subject',
    at: (row) => sql`case ${row('type')} when 'STORE' then ${row('subject')} end`,
    each: (text) => parseMessageHash(text).hash,
  },
  aggregateKeys: {
    column: 'subject',
    at: (row) => sql`case ${row('type')} when 'AGGREGATE'
      then substr(${row('subject')}, length(${row('owner')}) + 2) end`,
  },
  paymentTypes: {
    column: 'content',
    at: (row) => sql`${row('content')} -> 'payment' ->> 'type'`,
    each: oneOf(PAYMENT_TYPES),
  },
  tags: {
    column: 'tags',
    letter: 'g',
    many: true,
  },
  /** Numbers of shapes (shapes.ts). */
  shapes: { column: 'shape', letter: 'k', type: 'integer' },
  /** Paths of contents (shape.ts). */
  keys: {
    column: 'shape',
    led: {
      fits: (shape, paths) =>
        sql`exists (select from shapes s where s.id = ${shape} and s.paths && ${paths}::text[])`,
      values: (shape) => sql`(select s.paths from shapes s where s.id = ${shape})`,
    },
    each: (text, name) => parseJsonPath(text, name).join(''),
  },
  hashes: {
    column: 'item_hash',
    each: (text) => parseMessageHash(text).hash,
  },
  /** Of messages in force alone where it is left out. */
  statuses: {
    column: 'status',
    each: oneOf(STATUSES),
  },
  fromBlock: {
    column: 'item_hash',
    at: firstBlockOf,
    bound: '>=',
  },
  toBlock: {
    column: 'item_hash',
    at: firstBlockOf,
    bound: '<',
  },
  /** Milliseconds since 1970: when a message got its status. */
  settledFrom: { column: 'settled_at_ms', bound: '>=' },
  settledTo: { column: 'settled_at_ms', bound: '<' },
  /** Unix seconds. */
  from: {
    column: 'time',
    bound: '>=',
  },
  to: {
    column: 'time',
    bound: '<',
  },
} as const satisfies Readonly<Record<string, Property>>;

export type PropertyName = keyof typeof PROPERTIES;
export type MessageFilter = FilterOf<typeof PROPERTIES>;
export const PROPERTY_NAMES = Object.keys(PROPERTIES) as PropertyName[];
export const propertyOf = (name: PropertyName): Property => PROPERTIES[name];

/** Columns of `message_tags` beside the tag, copied from the message's row. */
export const TAG_COLUMNS: readonly RowColumn[] = ['item_hash', 'type', 'sender', 'channel', 'shape', 'time'];

type Labelled = {
  [N in PropertyName]: (typeof PROPERTIES)[N] extends { readonly letter: string } ? N : never;
}[PropertyName];
export type Letter = (typeof PROPERTIES)[Labelled]['letter'];

/** The properties that have labels. */
export const LABELLED = PROPERTY_NAMES.filter((name) => propertyOf(name).letter !== undefined).map(
  (name) => ({
    ...(PROPERTIES[name as Labelled] as Property & { letter: Letter; column: RowColumn }),
    name: name as Labelled,
  }),
);

/** An index that gives the messages of each combination of its properties' values in order of time. */
export interface Index {
  readonly name: string;
  /** The properties of its columns, in their order. Tags are in `message_tags`, where each is a row. */
  readonly on: readonly PropertyName[];
  /** Further properties that it carries: what is filtered by them is told without the row (migrations/021). */
  readonly carries?: readonly PropertyName[];
  /** Others than lists use it, too: it is the planner's to choose. */
  readonly isShared?: true;
}

/** Those that answer more of a filter first. */
export const INDEXES: readonly Index[] = [
  { name: 'message_tags_by_sender', on: ['tags', 'addresses', 'types'], carries: ['channels', 'shapes'] },
  { name: 'message_tags_by_channel', on: ['tags', 'channels', 'types'], carries: ['shapes'] },
  { name: 'message_tags_by_shape', on: ['tags', 'shapes'] },
  { name: 'messages_by_sender_channel', on: ['addresses', 'channels', 'types'], carries: ['shapes'] },
  { name: 'messages_by_sender_shape', on: ['addresses', 'shapes'], carries: ['channels'] },
  { name: 'messages_by_channel_shape', on: ['channels', 'shapes'] },
  { name: 'message_tags_by_tag', on: ['tags', 'types'] },
  { name: 'messages_by_subject', on: ['subjects', 'types'], isShared: true },
  { name: 'messages_by_sender', on: ['addresses', 'types'] },
  { name: 'messages_by_content_type', on: ['contentTypes'] },
  { name: 'messages_by_channel', on: ['channels', 'types'] },
  { name: 'messages_by_shape', on: ['shapes'] },
  { name: 'messages_by_type', on: ['types'] },
];

/** The index of one property alone. */
export const indexOf = (property: PropertyName): Index | undefined =>
  INDEXES.find(({ on: [first, ...rest] }) => first === property && rest.every((one) => propertyOf(one).all));
