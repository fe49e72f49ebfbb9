import { normaliseAddress, parseMessageHash } from '@skerry/protocol';
import { type MessageFilter, withSecondName } from '../lists/properties.ts';
import type { Filterable, FilterOf } from '../lists/property.ts';

/** Places that posts are found in: a post that nobody amended is nowhere but among the messages, so it costs nothing more to keep. */
const POST_TABLES = ['messages', 'amended_posts'] as const;
export type PostTable = (typeof POST_TABLES)[number];

interface PostProperty extends Filterable<Readonly<Record<PostTable, string>>> {
  /** The filter of messages that says the same, where their totals give those of posts. */
  readonly total?: keyof MessageFilter;
}

const inBoth = (column: string) => ({ messages: column, amended_posts: column });

/** What lists of posts are filtered by. Everything but dates is of the post as it began. */
export const POST_PROPERTIES = {
  hashes: {
    column: inBoth('item_hash'),
    each: (text) => parseMessageHash(text).hash,
  },
  owners: {
    column: inBoth('owner'),
    each: normaliseAddress,
  },
  refs: {
    column: { messages: 'subject', amended_posts: 'ref' },
  },
  types: {
    column: { messages: 'content_type', amended_posts: 'type' },
    total: 'contentTypes',
    each: withSecondName,
  },
  channels: {
    column: inBoth('channel'),
    total: 'channels',
  },
  tags: {
    column: inBoth('tags'),
    many: true,
    total: 'tags',
  },
  /** Unix seconds of the last change. */
  from: {
    column: { messages: 'time', amended_posts: 'updated' },
    bound: '>=',
  },
  to: {
    column: { messages: 'time', amended_posts: 'updated' },
    bound: '<',
  },
} as const satisfies Readonly<Record<string, PostProperty>>;

export type PostPropertyName = keyof typeof POST_PROPERTIES;
export type PostFilter = FilterOf<typeof POST_PROPERTIES>;
export const POST_PROPERTY_NAMES = Object.keys(POST_PROPERTIES) as PostPropertyName[];
export const postPropertyOf = (name: PostPropertyName): PostProperty => POST_PROPERTIES[name];
