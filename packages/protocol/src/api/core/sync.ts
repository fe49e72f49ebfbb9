import { RANGES_BODY_BYTES, WANTED_BODY_BYTES } from '../../sync/codec.ts';
import { ASKED_FILES_BODY_BYTES } from '../../sync/files.ts';
import { SHARED_BYTES_MAX } from '../../sync/shared.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, content, defaulted, orNull } from '../operation.ts';
import { answersFromMemory, reads } from './common/declare.ts';

const BINARY = 'application/octet-stream';
const bytes = (description: string, limitBytes: number) =>
  ({ kind: 'bytes', contentType: BINARY, description, limitBytes }) as const;

/** Messages in one offer; the last one may go beyond. */
export const OFFER_BYTES = 1024 * 1024;
const OFFER_BODY_BYTES = OFFER_BYTES + SHARED_BYTES_MAX + 64 * 1024;

/** The header that says where the next page begins. */
export const NEXT_PLACE_HEADER = 'x-next-place';

const PeerView = Type.Object(
  {
    name: Type.String(),
    address: Type.Optional(
      orNull(Type.String(), { description: 'of its key, as it says itself; null: it did not say' }),
    ),
    state: Type.Enum(['new', 'syncing', 'synced', 'stalled', 'failing', 'banned', 'self'], {
      description:
        'stalled: it answered for ten minutes without bringing what it says to have, and is not waited for; self: it proved to be this node',
    }),
    messages: orNull(Type.Integer(), { description: 'how many it announced' }),
    later: Type.Integer({ description: "those that are ahead of this node's clock" }),
    offset_ms: orNull(Type.Integer(), { description: "what its clock has more than this server's" }),
    taken: Type.Integer({ description: 'messages received from it since this node started' }),
    given: Type.Integer({ description: 'messages it accepted of those it was offered' }),
    synced_ms: orNull(Type.Integer(), { description: 'when this node last had everything of it' }),
    session_ms: Type.Optional(
      Type.Integer({
        description:
          'how long the last session took that came to its end, milliseconds; earlier releases do not say',
      }),
    ),
    failure: orNull(Type.String(), { description: 'code of the last failure' }),
    forgotten_ms: Type.Optional(
      orNull(Type.Integer(), {
        description: 'when all forgotten messages were last compared with it; earlier releases do not say',
      }),
    ),
    forgotten_failure: Type.Optional(
      orNull(Type.String(), {
        description:
          'code of the last failure to compare forgotten messages alone; everything else was compared',
      }),
    ),
    points: Type.Integer({ description: 'penalty points; from 50 on, the peer is ignored' }),
  },
  { title: 'Peer' },
);

const ClockView = Type.Object(
  {
    state: Type.Enum(['unknown', 'right', 'off', 'unsure'], {
      description:
        "right: most clocks of peers agree with this server's; off: most agree on another time, by which messages are judged; unsure: no majority agrees",
    }),
    time_ms: Type.Integer({ description: "this server's, milliseconds since 1970" }),
    offset_ms: orNull(Type.Integer(), {
      description: "what the median of the compared clocks has more than this server's",
    }),
    clocks: Type.Integer({ description: "how many were compared, this server's among them" }),
    correction_ms: Type.Integer({ description: "what this node adds to its server's clock" }),
  },
  { title: 'Clock' },
);

export const SyncStatusView = Type.Object(
  {
    node_id: Type.String({ description: 'of the running process' }),
    address: Type.Optional(
      Type.String({ description: 'address of the key that signs what the node announces' }),
    ),
    state: Type.Enum(['alone', 'syncing', 'synced', 'apart'], {
      description:
        'syncing: answers may be incomplete; synced: up to date; apart: no peer answers, or all that do are stalled; alone: no peers',
    }),
    messages: Type.Integer({ description: 'kept here, whatever their status' }),
    forgotten: Type.Optional(
      Type.Integer({ description: 'how many of them are forgotten; nodes of an earlier release do not say' }),
    ),
    behind: Type.Integer({ description: 'how many more the best peer has; stalled ones do not count' }),
    later: Type.Integer({
      description:
        "messages of a peer that are ahead of this node's clock; they are taken when their time comes",
    }),
    clock: ClockView,
    peers: Type.Array(PeerView),
  },
  { title: 'SyncStatus' },
);
export type SyncStatusView = Static<typeof SyncStatusView>;

const OfferView = Type.Object(
  {
    taken: Type.Integer({ description: 'messages stored now' }),
    known: Type.Integer({ description: 'messages this node already had' }),
    refused: Type.Integer({ description: 'messages this node does not accept, or not yet' }),
    forged: Type.Integer({
      description: 'messages with a bad signature; after too many, the sender is cut off',
    }),
  },
  { title: 'Offer' },
);
export type OfferView = Static<typeof OfferView>;

/** Keeping in step: what core nodes ask each other (docs/peers.md). */
export const SYNC_API = {
  getSyncStatus: {
    method: 'GET',
    path: '/api/v0/sync/status',
    summary: 'Get whether the node is in sync with its peers',
    ...answersFromMemory(),
    answers: { 200: SyncStatusView },
  },
  readMessages: {
    method: 'GET',
    path: '/api/v0/sync/messages',
    summary: 'List all messages in storage order, a page at a time, in the form nodes exchange',
    ...reads('INVALID_CURSOR'),
    query: Type.Object(
      {
        place: defaulted(Type.String({ maxLength: 88, description: 'where the previous page ended' }), ''),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: content(
        `messages, each with its length before it; ${NEXT_PLACE_HEADER} says where the next page begins`,
        BINARY,
      ),
    },
  },
  compareRanges: {
    method: 'POST',
    path: '/api/v0/sync/ranges',
    summary: 'Compare ranges of the set of messages (range-based set reconciliation)',
    ...reads('INVALID_PARAMETERS'),
    body: bytes('ranges with fingerprints', RANGES_BODY_BYTES),
    answers: { 200: content('parts or keys of the ranges that differ', BINARY) },
  },
  compareForgotten: {
    method: 'POST',
    path: '/api/v0/sync/forgotten',
    summary:
      'Compare ranges of the set of forgotten messages, and of what is told of them without their texts',
    ...reads('INVALID_PARAMETERS'),
    body: bytes('ranges with fingerprints', RANGES_BODY_BYTES),
    answers: { 200: content('parts or keys of the ranges that differ', BINARY) },
  },
  fetchMessages: {
    method: 'POST',
    path: '/api/v0/sync/messages',
    summary: 'Fetch messages by key, in the form nodes exchange',
    ...reads('INVALID_PARAMETERS'),
    body: bytes('keys', WANTED_BODY_BYTES),
    answers: {
      200: content('messages, each with its length before it; those that are not here are left out', BINARY),
    },
  },
  findHeldFiles: {
    method: 'POST',
    path: '/api/v0/sync/files',
    summary: 'Find out which of up to 1,000 files are here',
    ...reads('INVALID_PARAMETERS'),
    body: bytes('the SHA-256 of each file', ASKED_FILES_BODY_BYTES),
    answers: {
      200: content('a bit for each file, in the order of the question: 1 where it is here', BINARY),
    },
  },
  offerMessages: {
    method: 'POST',
    path: '/api/v0/sync/offers',
    summary: 'Offer messages from a node that cannot be reached, in the form nodes exchange',
    ...reads('INVALID_PARAMETERS', 'NOT_PERMITTED', 'STORAGE_FULL'),
    body: bytes('messages, each with its length before it', OFFER_BODY_BYTES),
    answers: { 200: OfferView },
  },
} as const satisfies Api;
