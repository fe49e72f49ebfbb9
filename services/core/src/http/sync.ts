import type { HttpServer } from '@skerry/kit';
import {
  AppError,
  answerRanges,
  decodeKeys,
  decodeQuestion,
  encodeRanges,
  RANGES_BODY_BYTES,
  type Range,
  WANTED_BODY_BYTES,
} from '@skerry/protocol';
import type { FastifyReply } from 'fastify';
import Type from 'typebox';
import { Budget, RANGES_BUDGET } from '../sync/budget.ts';
import { encodeFrames } from '../sync/frames.ts';
import { NEXT_PLACE_HEADER } from '../sync/link.ts';
import { OFFER_BODY_BYTES } from '../sync/offers.ts';
import { readPage, readWanted } from '../sync/read.ts';
import { answersFromMemory, reads, takesBody } from './declare.ts';
import type { Rooms } from './rooms.ts';

const BINARY = 'application/octet-stream';
const binary = (description: string) => ({
  contentType: BINARY,
  schema: { type: 'string', format: 'binary', description },
});
const binaryView = (description: string) => ({
  description,
  content: { [BINARY]: { schema: { type: 'string', format: 'binary' } } },
});
/** Bodies of messages that are being read at once: each may have megabytes. */
const READS_MAX = 4;

/** What comparing ranges costs: each of them, and each key that is listed. */
const costOf = (ranges: readonly Range[]) =>
  ranges.reduce((cost, range) => cost + 1 + (range.kind === 'keys' ? range.keys.length : 0), 0);

const PeerView = Type.Object({
  name: Type.String(),
  state: Type.Enum(['new', 'syncing', 'synced', 'failing', 'banned', 'self']),
  messages: Type.Union([Type.Integer(), Type.Null()], { description: 'how many it said to have' }),
  later: Type.Integer({ description: "those that are ahead of this node's clock" }),
  offset_ms: Type.Union([Type.Integer(), Type.Null()], {
    description: "what its clock has more than this machine's",
  }),
  taken: Type.Integer({ description: 'messages that came from it since this node began' }),
  given: Type.Integer({ description: 'messages that it took of those that it was offered' }),
  synced_ms: Type.Union([Type.Integer(), Type.Null()], {
    description: 'when it last had nothing that this node lacked',
  }),
  failure: Type.Union([Type.String(), Type.Null()], { description: 'code of the last failure' }),
  points: Type.Integer({ description: 'what is held against it; from 50 on it is not listened to' }),
});
const StatusView = Type.Object({
  node_id: Type.String({ description: 'of the running process' }),
  state: Type.Enum(['alone', 'syncing', 'synced', 'apart'], {
    description: 'syncing: answers may be incomplete; apart: no peer answers',
  }),
  messages: Type.Integer({ description: 'kept here, whatever their status' }),
  behind: Type.Integer({ description: 'how many more the best peer has' }),
  later: Type.Integer({
    description:
      "messages of a peer that are ahead of this node's clock; they are taken when their time comes",
  }),
  clock: Type.Object({
    state: Type.Enum(['unknown', 'right', 'off', 'unsure'], {
      description:
        "right: most clocks of peers agree with this machine's; off: most agree on another time, by which messages are judged; unsure: no majority agrees",
    }),
    time_ms: Type.Integer({ description: "this machine's, milliseconds since 1970" }),
    offset_ms: Type.Union([Type.Integer(), Type.Null()], {
      description: 'what the median of the clocks that were compared has more',
    }),
    clocks: Type.Integer({ description: "how many were compared, this machine's among them" }),
    correction_ms: Type.Integer({ description: "what this node adds to its machine's clock" }),
  }),
  peers: Type.Array(PeerView),
});
const OfferView = Type.Object({
  taken: Type.Integer({ description: 'messages that are kept now' }),
  known: Type.Integer({ description: 'those that were here already' }),
  refused: Type.Integer({ description: 'those that this node does not take, or not yet' }),
  forged: Type.Integer({
    description: 'those that nobody signed; too many, and nothing more is taken from there',
  }),
});
const PageQuery = Type.Object(
  { place: Type.String({ default: '', maxLength: 88, description: 'where an earlier page ended' }) },
  { additionalProperties: false },
);

/** Keeping in step: what core nodes ask each other (docs/peers.md). */
export async function syncRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const { db, sync } = rooms;
  const budget = new Budget(RANGES_BUDGET, rooms.settings.limits.now);
  let reading = 0;

  /** Bounds what is read at once; who comes beyond it is told to come back. */
  async function bounded<T>(read: () => Promise<T>): Promise<T> {
    if (!sync.set.isReady) throw new AppError('OVERLOADED', 'the node is still counting its messages');
    if (reading >= READS_MAX) throw new AppError('OVERLOADED', `${READS_MAX} peers are being answered`);
    reading++;
    try {
      return await read();
    } finally {
      reading--;
    }
  }

  const sendBinary = (reply: FastifyReply, bytes: Uint8Array) => reply.type(BINARY).send(Buffer.from(bytes));

  app.get(
    '/sync/status',
    {
      schema: { summary: 'Whether the node has what its peers have', response: { 200: StatusView } },
      config: answersFromMemory(),
    },
    async () => sync.syncer.view(),
  );

  app.get(
    '/sync/messages',
    {
      schema: {
        summary: 'All messages in their order, a page at a time, as nodes pass them on',
        querystring: PageQuery,
        response: {
          200: binaryView(
            'messages, each with its length before it; x-next-place says where the next page begins',
          ),
        },
      },
      config: reads('INVALID_CURSOR', 'OVERLOADED'),
    },
    async (request, reply) => {
      const { place } = request.query as { place: string };
      const { texts, next } = await bounded(() => readPage(db, sync.set, place));
      if (next !== null) reply.header(NEXT_PLACE_HEADER, next);
      return sendBinary(reply, encodeFrames(texts));
    },
  );

  await app.register(async (child) => {
    const scope = child as HttpServer;
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(BINARY, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    const bytesOf = (body: unknown) => (Buffer.isBuffer(body) ? body : Buffer.alloc(0));

    scope.post(
      '/sync/ranges',
      {
        schema: {
          summary: 'Compare ranges of the set of messages (range-based set reconciliation)',
          response: { 200: binaryView('parts or keys of the ranges that differ') },
        },
        config: takesBody('general', binary('ranges with fingerprints'), 'INVALID_PARAMETERS', 'OVERLOADED'),
        bodyLimit: RANGES_BODY_BYTES,
      },
      async (request, reply) => {
        if (!sync.set.isReady) throw new AppError('OVERLOADED', 'the node is still counting its messages');
        const standing = rooms.standingOf(request);
        budget.check(standing);
        const question = decodeQuestion(bytesOf(request.body));
        const answer = answerRanges(sync.set.index, question);
        budget.charge(standing, costOf(question) + costOf(answer));
        return sendBinary(reply, encodeRanges(answer));
      },
    );

    scope.post(
      '/sync/messages',
      {
        schema: {
          summary: 'Messages by their keys, as nodes pass them on',
          response: {
            200: binaryView('messages, each with its length before it; those that are not here are left out'),
          },
        },
        config: takesBody('general', binary('keys'), 'INVALID_PARAMETERS', 'OVERLOADED'),
        bodyLimit: WANTED_BODY_BYTES,
      },
      async (request, reply) => {
        const wanted = decodeKeys(bytesOf(request.body));
        const texts = await bounded(() => readWanted(db, sync.set, wanted));
        return sendBinary(reply, encodeFrames(texts));
      },
    );

    scope.post(
      '/sync/offers',
      {
        schema: {
          summary: 'Messages of a node that cannot be asked for them, as nodes pass them on',
          response: { 200: OfferView },
        },
        config: takesBody(
          'general',
          binary('messages, each with its length before it'),
          'INVALID_PARAMETERS',
          'NOT_PERMITTED',
          'OVERLOADED',
          'STORAGE_FULL',
        ),
        bodyLimit: OFFER_BODY_BYTES,
      },
      (request) => sync.offers.take(bytesOf(request.body), rooms.standingOf(request).key),
    );
  });
}
