import { type TProperties, type TSchema, Type } from '../../../type.ts';
import { fromTime, toTime } from './dates.ts';

/**
 * What lists are filtered by, as it is asked for: one entry for each filter, with its names in each list. How it is matched
 * stands in the core node's table of properties, which the compiler compares with this one.
 */

/** Lists that filters are for, by their paths behind the prefix. */
export type FilteredList = '/messages' | '/messages.json' | '/posts.json';

interface Filter {
  readonly schema: TSchema;
  /** Several names are one parameter. */
  readonly names: Readonly<Partial<Record<FilteredList, readonly string[]>>>;
}

const commaList = (description: string) =>
  Type.Optional(Type.String({ description: `${description}, comma-separated` }));
const blockHeight = (description: string) =>
  Type.Optional(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: `height ${description}` }),
  );

const inBoth = <const Name extends string>(name: Name) =>
  ({ '/messages': [name], '/messages.json': [name] }) as const;

export const MESSAGE_FILTERS = {
  addresses: { schema: commaList('sender addresses'), names: inBoth('addresses') },
  owners: {
    schema: commaList('addresses on whose behalf the messages are'),
    names: { '/messages.json': ['owners'] },
  },
  types: {
    schema: commaList('message types'),
    names: { '/messages': ['types'], '/messages.json': ['msgTypes', 'msgType'] },
  },
  channels: { schema: commaList('channels'), names: inBoth('channels') },
  chains: { schema: commaList('chain codes'), names: { '/messages.json': ['chains'] } },
  contentTypes: {
    schema: commaList('types of POST contents'),
    names: { '/messages.json': ['contentTypes', 'content_types'] },
  },
  refs: {
    schema: commaList('what POST and STORE messages name in `content.ref`'),
    names: { '/messages.json': ['refs'] },
  },
  fileHashes: {
    schema: commaList('files that STORE messages keep'),
    names: { '/messages.json': ['contentHashes'] },
  },
  aggregateKeys: {
    schema: commaList('keys of aggregates'),
    names: { '/messages.json': ['contentKeys'] },
  },
  paymentTypes: {
    schema: commaList(
      'what the messages say in `content.payment.type`: hold, superfluid, credit. Those that say nothing are paid by credit, too, and fit none',
    ),
    names: { '/messages.json': ['paymentTypes'] },
  },
  tags: { schema: commaList('tags'), names: inBoth('tags') },
  keys: {
    schema: commaList('paths such as profile.name or items[*].id: messages whose content has one of them'),
    names: { '/messages': ['content.keys'] },
  },
  hashes: { schema: commaList('item hashes'), names: inBoth('hashes') },
  statuses: {
    schema: commaList(
      'processed (where this is left out), pending, rejected, forgotten, removing, removed; forgotten and removed stand alone, and dates are then those of the end',
    ),
    names: { '/messages.json': ['msgStatuses', 'message_statuses'] },
  },
  fromBlock: {
    schema: blockHeight('of the first block that confirms the message, inclusive'),
    names: { '/messages.json': ['startBlock'] },
  },
  toBlock: {
    schema: blockHeight('of that block, exclusive; 0 for no end'),
    names: { '/messages.json': ['endBlock'] },
  },
  from: { schema: fromTime, names: { '/messages.json': ['startDate'] } },
  to: { schema: toTime, names: { '/messages.json': ['endDate'] } },
} as const satisfies Readonly<Record<string, Filter>>;

export const POST_FILTERS = {
  hashes: { schema: commaList('item hashes'), names: { '/posts.json': ['hashes'] } },
  owners: {
    schema: commaList('addresses that the posts belong to'),
    names: { '/posts.json': ['addresses'] },
  },
  refs: { schema: commaList('what the posts refer to'), names: { '/posts.json': ['refs'] } },
  types: { schema: commaList('types of POST contents'), names: { '/posts.json': ['types'] } },
  channels: { schema: commaList('channels'), names: { '/posts.json': ['channels'] } },
  tags: { schema: commaList('tags'), names: { '/posts.json': ['tags'] } },
  from: { schema: fromTime, names: { '/posts.json': ['startDate'] } },
  to: { schema: toTime, names: { '/posts.json': ['endDate'] } },
} as const satisfies Readonly<Record<string, Filter>>;

export type Filters = Readonly<Record<string, Filter>>;

type NamesOf<F, L> = F extends { readonly names: infer N }
  ? L extends keyof N
    ? N[L] extends readonly (infer Name extends string)[]
      ? Name
      : never
    : never
  : never;

type UnionToIntersection<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer I) => void
  ? I
  : never;

/** Every name of a filter in a list, with the filter's schema. */
type QueryFields<F, L extends FilteredList> = UnionToIntersection<
  {
    [K in keyof F]: F[K] extends { readonly schema: infer S } ? Record<NamesOf<F[K], L>, S> : never;
  }[keyof F]
>;

/** A filter's names in a list; none where the list has no such filter. */
export const namesIn = ({ names }: Filter, list: FilteredList): readonly string[] => names[list] ?? [];

/** The query parameters of a list. */
export const queryOf = <const F extends Filters, const L extends FilteredList>(filters: F, list: L) =>
  Object.fromEntries(
    Object.values(filters).flatMap((filter) => namesIn(filter, list).map((name) => [name, filter.schema])),
  ) as QueryFields<F, L> & TProperties;
