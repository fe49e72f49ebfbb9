import { EnvelopeShape } from '../../content/envelope-shape.ts';
import { type Static, Type } from '../../type.ts';
import { MessageStatus, MessageStatusView, MessageView, PaginationView } from '../../views.ts';
import { type Api, NO_PARAMETERS, type Operation, orNull } from '../operation.ts';
import { bodiesQuery } from './common/bodies.ts';
import { reads } from './common/declare.ts';
import { MESSAGE_FILTERS, queryOf } from './common/filters.ts';
import { NextCursor, pageQuery } from './common/pagination.ts';
import { PublicationView, SUBMISSION_ANSWERS } from './common/submission.ts';

/** The network form's body (docs/wire-forms.md). */
const NetworkBody = Type.Object(
  {
    sync: Type.Optional(
      Type.Boolean({ description: 'accepted but has no effect: the answer always comes after the verdict' }),
    ),
    message: Type.Object({
      chain: Type.String(),
      sender: Type.String(),
      type: Type.String(),
      channel: Type.Optional(orNull(Type.String())),
      time: Type.Number({ description: 'Unix seconds, with fraction' }),
      item_type: Type.Optional(Type.Enum(['inline', 'storage', 'ipfs'])),
      item_hash: Type.String(),
      item_content: Type.Optional(orNull(Type.String())),
      signature: Type.String(),
    }),
  },
  { title: 'NetworkBody' },
);

/** How deployed nodes refuse a message (docs/decisions.md 8: 422). */
export const RefusalView = Type.Object(
  {
    error: Type.String(),
    status: Type.Literal('error'),
    code: Type.String({
      description:
        'what the same message would be refused with as an envelope, where each code has its own status (docs/errors.md)',
    }),
    publication_status: Type.Object({ status: Type.String(), failed: Type.Array(Type.String()) }),
    message_status: Type.Literal('rejected'),
    details: Type.Optional(Type.Unknown()),
  },
  { title: 'Refusal' },
);
export type RefusalView = Static<typeof RefusalView>;

const { channel, confirmations, shared } = MessageView.properties;

/** A message in the field names and forms of deployed nodes. What readers do without is optional. */
export const NetworkMessageView = Type.Object(
  {
    item_hash: Type.String(),
    type: Type.String(),
    chain: Type.String(),
    sender: Type.String(),
    signature: Type.String(),
    item_type: Type.Optional(orNull(Type.Enum(['inline', 'storage', 'ipfs']))),
    item_content: Type.Optional(
      orNull(Type.String(), { description: 'the text that the hash is of, where it is inline' }),
    ),
    content: Type.Optional(Type.Unknown({ description: 'null once the message is forgotten' })),
    time: Type.Number({ description: 'Unix seconds, with fraction' }),
    channel: Type.Optional(channel),
    size: Type.Optional(
      orNull(Type.Integer(), { description: 'bytes of the content; null once it is erased' }),
    ),
    confirmations: Type.Optional(confirmations),
    confirmed: Type.Optional(Type.Boolean()),
    shared,
  },
  { title: 'NetworkMessage' },
);
export type NetworkMessageView = Static<typeof NetworkMessageView>;

/** A message that waits: its time is a date. */
const PendingMessageView = Type.Object(
  {
    ...NetworkMessageView.properties,
    time: Type.String({ format: 'date-time' }),
    reception_time: Type.String({ format: 'date-time' }),
  },
  { title: 'PendingMessage' },
);

/** One message, with what deployed nodes say of a forgotten one beside its fields. */
const ShownMessageView = Type.Object(
  {
    ...NetworkMessageView.properties,
    owner: Type.Optional(Type.String({ description: 'forgotten only: on whose behalf it was' })),
    payment_type: Type.Optional(
      orNull(Type.String(), {
        description:
          'forgotten only: its `content.payment.type`; null where it has none, and once it is erased',
      }),
    ),
    forgotten_at: Type.Optional(Type.String({ format: 'date-time' })),
  },
  { title: 'ShownMessage' },
);

/** A post in the form of deployed nodes: the content of its latest amend, the rest of the original. */
export const NetworkPostView = Type.Object(
  {
    address: Type.String({ description: 'owner' }),
    content: Type.Unknown(),
    item_hash: Type.String({ description: 'of the latest amend' }),
    hash: Type.Optional(Type.String({ description: 'of the original' })),
    sender: Type.Optional(Type.String()),
    type: Type.Optional(orNull(Type.String())),
    ref: Type.Optional(Type.Unknown({ description: 'what it refers to, or null' })),
    original_item_hash: Type.Optional(Type.String()),
    original_signature: Type.Optional(orNull(Type.String())),
    original_type: Type.Optional(orNull(Type.String())),
    chain: Type.Optional(Type.String()),
    signature: Type.Optional(orNull(Type.String())),
    item_type: NetworkMessageView.properties.item_type,
    item_content: NetworkMessageView.properties.item_content,
    time: Type.Optional(Type.Number({ description: 'Unix seconds, with fraction' })),
    channel: Type.Optional(channel),
    size: NetworkMessageView.properties.size,
    confirmations: NetworkMessageView.properties.confirmations,
    confirmed: NetworkMessageView.properties.confirmed,
  },
  { title: 'NetworkPost' },
);
export type NetworkPostView = Static<typeof NetworkPostView>;

/** What `GET /messages/{hash}` has beside the specification's message: the fields of deployed nodes. */
const verdict = {
  status: MessageStatus,
  reception_time: Type.String({ format: 'date-time' }),
  reason: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  error_code: Type.Optional(
    Type.Integer({ description: 'the reason as deployed nodes number it; rejected only' }),
  ),
  details: Type.Optional(orNull(Type.Object({ errors: Type.Array(Type.Unknown()) }))),
  message: Type.Optional(ShownMessageView),
  messages: Type.Optional(Type.Array(PendingMessageView, { description: 'the same while pending' })),
  forgotten_by: Type.Optional(Type.Array(Type.String())),
};

export const JudgedMessageView = Type.Object(
  { ...MessageView.properties, ...verdict },
  { title: 'JudgedMessage' },
);
export type JudgedMessageView = Static<typeof JudgedMessageView>;

const HashParams = Type.Object({ hash: Type.String({ description: 'item hash: SHA-256, or a CID' }) });
const strict = { additionalProperties: false } as const;

/** What a content may be refused with, beside what every signed body may be. */
const CONTENT_ERRORS = [
  'CREDIT_INSUFFICIENT',
  'INVALID_SSH_KEY',
  'UNKNOWN_IMAGE',
  'INVALID_HASH',
  'HASH_MISMATCH',
  'AMEND_OF_AMEND',
  'AMEND_TARGET_NOT_FOUND',
  'FORGET_FORGET',
  'FORGET_TARGET_NOT_FOUND',
  'INSTANCE_NOT_FOUND',
  'FILE_NOT_FOUND',
  'CONTENT_NOT_FOUND',
  'MESSAGE_FORGOTTEN',
] as const;

/** What a list of messages may be refused with. */
export const LIST_ERRORS = ['INVALID_HASH', 'INVALID_CURSOR', 'LIST_TOO_COSTLY'] as const;

/** Messages: submit, get, list (specification, "Messages"; the lists of deployed nodes: deployed/lists.ts). */
export const MESSAGES_API = {
  submitMessage: {
    method: 'POST',
    path: '/api/v0/messages',
    summary: 'Submit a signed message, in the envelope or the network form',
    rateClass: 'authenticated',
    errors: ['DATABASE_UNAVAILABLE', ...CONTENT_ERRORS],
    body: { kind: 'signed', schema: Type.Union([EnvelopeShape, NetworkBody]) },
    answers: { ...SUBMISSION_ANSWERS, 422: RefusalView },
    deployed: {
      differs:
        'the answer always waits for the verdict, whatever `sync` says; a refused message is 422 in the network form, and has the status of its code as an envelope',
    },
  },
  getMessage: {
    method: 'GET',
    path: '/api/v0/messages/:hash',
    query: Type.Object({ bodies: bodiesQuery }, strict),
    summary: 'Get a message with its status and the reason for it',
    ...reads('INVALID_HASH', 'MESSAGE_NOT_FOUND'),
    params: HashParams,
    answers: { 200: JudgedMessageView },
    deployed: { differs: 'fields of the specification stand beside those of deployed nodes' },
  },
  getMessageStatus: {
    method: 'GET',
    path: '/api/v0/messages/:hash/status',
    query: NO_PARAMETERS,
    summary: 'Get the status of a message and the reason for it',
    ...reads('INVALID_HASH', 'MESSAGE_NOT_FOUND'),
    params: HashParams,
    answers: { 200: MessageStatusView },
    deployed: { differs: '`reason` says why' },
  },
  getMessageContent: {
    method: 'GET',
    path: '/api/v0/messages/:hash/content',
    query: NO_PARAMETERS,
    summary: 'Get the content of a message; for a POST, its inner content',
    ...reads('INVALID_HASH', 'MESSAGE_NOT_FOUND', 'MESSAGE_FORGOTTEN', 'MESSAGE_NOT_PROCESSED'),
    params: HashParams,
    answers: { 200: Type.Unknown() },
    deployed: {
      differs: '409 while the message is not in force, and 410 once it is forgotten; deployed nodes say 422',
    },
  },
  listMessages: {
    method: 'GET',
    path: '/api/v0/messages',
    summary: 'List messages in force, newest first',
    ...reads(...LIST_ERRORS),
    query: Type.Object(
      { ...queryOf(MESSAGE_FILTERS, '/messages'), ...pageQuery, bodies: bodiesQuery },
      strict,
    ),
    answers: {
      200: Type.Object({
        messages: Type.Array(MessageView),
        pagination: PaginationView,
        next_cursor: NextCursor,
      }),
    },
  },
} as const satisfies Api;

/**
 * `submitMessage` as any node of the network answers it where the message is in the network form: deployed ones say nothing of its hash,
 * which the sender knows.
 */
export const PUBLISH_MESSAGE = {
  ...MESSAGES_API.submitMessage,
  answers: { 200: PublicationView, 202: PublicationView },
} as const satisfies Operation;
