import { type TSchema, Type } from '@skerry/protocol/type';

/**
 * What Python's clients of the deployed network take: they read answers into models that refuse every field they do not
 * know, and lack nothing that they need.
 */

const strict = { additionalProperties: false } as const;
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const maybe = <T extends TSchema>(schema: T) => Type.Optional(orNull(schema));
const Anything = Type.Record(Type.String(), Type.Unknown());
const Seconds = Type.Number({ minimum: 0 });
const SecondsOrText = Type.Union([Seconds, Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT' })]);
const Hash = Type.String({ pattern: '^([0-9a-f]{64}|Qm[1-9A-HJ-NP-Za-km-z]{42,44}|bafy[a-z2-7]{55})$' });
const ItemType = Type.Enum(['inline', 'storage', 'ipfs']);

const Confirmation = Type.Object(
  { chain: Type.String(), height: Type.Integer(), hash: Type.String() },
  { additionalProperties: true },
);

/** A message in a list, in a frame of a socket, and as `message` of one that is asked for. */
export const StrictMessage = Type.Object(
  {
    _id: Type.Optional(Anything),
    chain: Type.String(),
    sender: Type.String(),
    type: Type.Enum(['POST', 'AGGREGATE', 'STORE', 'PROGRAM', 'INSTANCE', 'FORGET']),
    channel: maybe(Type.String()),
    confirmations: maybe(Type.Array(Confirmation)),
    confirmed: maybe(Type.Boolean()),
    signature: orNull(Type.String()),
    size: maybe(Type.Integer()),
    time: SecondsOrText,
    item_type: ItemType,
    item_content: maybe(Type.String()),
    hash_type: maybe(Type.String()),
    item_hash: Hash,
    content: Anything,
    forgotten_by: maybe(Type.Array(Type.String())),
  },
  strict,
);

/** A post of `/api/v0/posts.json`: all of its fields, and no others. */
export const StrictPost = Type.Object(
  {
    chain: Type.String(),
    item_hash: Hash,
    sender: Type.String(),
    type: Type.String(),
    channel: orNull(Type.String()),
    confirmed: Type.Boolean(),
    content: Anything,
    item_content: orNull(Type.String()),
    item_type: ItemType,
    signature: orNull(Type.String()),
    size: Type.Integer(),
    time: Type.Number(),
    confirmations: Type.Array(Confirmation),
    original_item_hash: Hash,
    original_signature: orNull(Type.String()),
    original_type: Type.String(),
    hash: Hash,
    address: orNull(Type.String()),
    ref: orNull(Type.Union([Type.String(), Anything])),
  },
  strict,
);

/** A file of `/api/v0/addresses/{address}/files`. */
export const StrictFile = Type.Object(
  {
    file_hash: Type.String(),
    size: Type.Integer(),
    type: Type.Enum(['file', 'dir']),
    created: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT' }),
    item_hash: Type.String(),
  },
  strict,
);

/** A line of `/api/v0/balances`. */
export const StrictBalance = Type.Object(
  { address: Type.String(), balance: Type.Union([Type.Number(), Type.String()]), chain: Type.String() },
  strict,
);

/** What `/api/v0/addresses/stats.json` and its second version say of an address. */
export const StrictStats = Type.Object(
  {
    messages: Type.Integer(),
    post: Type.Integer(),
    aggregate: Type.Integer(),
    store: Type.Integer(),
    forget: Type.Integer(),
    program: Type.Integer(),
    instance: Type.Integer(),
  },
  strict,
);

/** The answer to a message, of status 200 and 202; more fields are taken. */
export const Published = Type.Object({
  message_status: Type.Enum(['pending', 'processed', 'rejected', 'forgotten']),
  publication_status: Type.Object({
    status: Type.Enum(['success', 'warning', 'error']),
    failed: Type.Array(Type.String()),
  }),
});

/** The answer of `/api/v0/price`; more fields are taken. */
export const PriceAnswer = Type.Object({
  required_tokens: Type.Number(),
  payment_type: Type.Enum(['hold', 'superfluid', 'credit']),
  cost: maybe(Type.String({ pattern: '^\\d+(\\.\\d+)?$' })),
  detail: maybe(Type.Array(Anything)),
  charged_address: maybe(Type.String()),
});
