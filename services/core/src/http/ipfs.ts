import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { HttpServer } from '@skerry/kit';
import { AppError, IpfsPinContent, LIMITS } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { waitForEvent } from '../events/wait.ts';
import { type BlockId, parseCid } from '../ipfs/cid.ts';
import type { IpfsDirectory, KeptNode } from '../ipfs/ipfs-files.ts';
import { IPFS_LIMITS } from '../ipfs/limits.ts';
import { findMessage } from '../messages/read.ts';
import { takesBody, takesSigned } from './declare.ts';
import { guardedReader, readMetadata, STORE_ERRORS, submitStore } from './network-storage.ts';
import type { Rooms } from './rooms.ts';
import { checkJson } from './storage.ts';
import { formOptions, withFormOf } from './storage-form.ts';
import { BYTES_VIEWS, closing, IPFS_READ_ERRORS, READS_BYTES, sendBytes } from './storage-read.ts';
import { AppliedView, answerSubmitted, PendingView, readBodiesAsBytes, submitBody } from './submission.ts';

const DirectoryView = Type.Object({
  hash: Type.String({ description: 'CID' }),
  type: Type.Literal('directory'),
  entries: Type.Array(
    Type.Object({
      name: Type.String(),
      hash: Type.String({ description: 'CID' }),
      size: Type.Integer({ description: 'bytes, as the directory says' }),
    }),
  ),
  complete: Type.Boolean({
    description: `false: there are more than the ${IPFS_LIMITS.entries} that are shown`,
  }),
});
const ADDED = Type.Object({
  status: Type.Union([Type.Literal('success'), Type.Literal('pending')]),
  hash: Type.String({ description: 'CID' }),
  name: Type.Optional(Type.String()),
  size: Type.Optional(Type.Integer({ description: 'bytes' })),
});
const ADD_FILE_BODY = {
  contentType: 'multipart/form-data',
  schema: {
    type: 'object',
    properties: {
      metadata: {
        type: 'string',
        description: 'JSON: {message, sync}, a signed STORE message of the network form with item_type ipfs',
      },
      file: { type: 'string', format: 'binary' },
    },
    required: ['file'],
    additionalProperties: false,
  },
};
const HashParams = Type.Object({ hash: Type.String({ description: 'CID' }) });
const PathParams = Type.Object({
  hash: Type.String({ description: 'CID' }),
  '*': Type.String({ description: 'names below it, joined by slashes' }),
});
const FormatQuery = Type.Object(
  {
    format: Type.Optional(
      Type.Literal('raw', { description: 'the block itself, where it is kept here (trustless gateway)' }),
    ),
  },
  { additionalProperties: false },
);
const WRITES_IPFS = [
  'UPLOAD_SHARE_USED',
  'STORAGE_FULL',
  'STORAGE_UNAVAILABLE',
  ...IPFS_READ_ERRORS,
] as const;
const IMMUTABLE = 'public, max-age=31536000, immutable';

type ReadRequest = FastifyRequest<{ Params: { hash: string }; Querystring: { format?: 'raw' } }>;

async function sendDirectory(found: IpfsDirectory, request: ReadRequest, reply: FastifyReply) {
  const listed = await found.list();
  const entries = listed.map(({ name, cid, sizeBytes }) => ({ name, hash: cid, size: sizeBytes }));
  reply.headers({ etag: `"${found.hash}.json"`, 'cache-control': IMMUTABLE, 'accept-ranges': 'none' });
  if (request.method === 'HEAD') return reply.type('application/json; charset=utf-8').send();
  const complete = entries.length < IPFS_LIMITS.entries;
  return reply.send({ hash: found.hash, type: 'directory', entries, complete });
}

async function sendBlock(rooms: Rooms, id: BlockId, reply: FastifyReply) {
  const bytes = await rooms.ipfs.block(id, closing(reply));
  return reply
    .headers({
      'content-type': 'application/vnd.ipld.raw',
      'cache-control': IMMUTABLE,
      'x-content-type-options': 'nosniff',
      'content-disposition': `attachment; filename="${id.text}.bin"`,
    })
    .send(bytes);
}

/** @param path below the CID; empty for the CID itself */
async function answerRead(rooms: Rooms, path: string, request: ReadRequest, reply: FastifyReply) {
  const id = parseCid(request.params.hash);
  const segments = path.split('/').filter((segment) => segment !== '');
  if (segments.length > IPFS_LIMITS.pathSegments)
    throw new AppError('INVALID_PARAMETERS', `a path may have ${IPFS_LIMITS.pathSegments} parts`);
  if (request.query.format === 'raw' && segments.length === 0) return sendBlock(rooms, id, reply);
  const found = await rooms.ipfs.open(id, segments, closing(reply));
  reply.header('x-ipfs-path', `/ipfs/${[id.text, ...segments.map(encodeURIComponent)].join('/')}`);
  return found.kind === 'directory'
    ? sendDirectory(found, request, reply)
    : sendBytes(found, found.contentType, request, reply);
}

/** Resolves when the message has its verdict, or after a while. */
async function waitForPin(rooms: Rooms, itemHash: string, cursor: string): Promise<void> {
  await waitForEvent(
    rooms.events,
    cursor,
    ({ kind, data }) => kind === 'message' && data.item_hash === itemHash,
    rooms.settings.ipfsPinWaitMs,
    rooms.signal,
  );
}

/** IPFS (specification, "IPFS"), and what deployed nodes take for it. */
export async function ipfsRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  await app.register(multipart, formOptions);
  const method: ('GET' | 'HEAD')[] = ['GET', 'HEAD'];
  const views = {
    ...BYTES_VIEWS,
    200: {
      description: 'the bytes of a file, or the entries of a directory',
      content: {
        '*/*': { schema: { type: 'string', format: 'binary' } },
        'application/json': { schema: DirectoryView },
      },
    },
  };
  app.route({
    method,
    url: '/ipfs/:hash',
    exposeHeadRoute: false,
    schema: {
      summary: 'A file of IPFS with its content type, or the entries of a directory',
      params: HashParams,
      querystring: FormatQuery,
      response: views,
    },
    config: READS_BYTES,
    handler: (request, reply) => answerRead(rooms, '', request, reply),
  });
  app.route({
    method,
    url: '/ipfs/:hash/*',
    exposeHeadRoute: false,
    schema: {
      summary: 'What lies at a path below a directory of IPFS',
      params: PathParams,
      querystring: FormatQuery,
      response: views,
    },
    config: READS_BYTES,
    handler: (request, reply) => answerRead(rooms, request.params['*'], request, reply),
  });

  app.post(
    '/ipfs/add_file',
    {
      schema: {
        summary: 'Add a file to IPFS (multipart: metadata with a signed STORE message, file)',
        response: { 200: ADDED, 202: ADDED },
      },
      config: {
        ...takesBody('general', ADD_FILE_BODY, ...STORE_ERRORS, ...WRITES_IPFS),
        slowAfterMs: Infinity,
        watchesItsBody: true,
      },
      bodyLimit: Number.MAX_SAFE_INTEGER,
    },
    (request, reply) =>
      withFormOf(
        request,
        reply,
        rooms,
        guardedReader(
          rooms,
          request,
          (source, limitBytes) =>
            rooms.ipfs.add(source, { cidVersion: 0, limitBytes, signal: closing(reply) }),
          async () => {},
          // What is kept before its message is judged: of who sent too much that no message kept, nothing more.
          () => rooms.uploads.checkShare(rooms.standingOf(request)),
        ),
        async ({ fields, file }) => {
          if (!file) throw new AppError('INVALID_PARAMETERS', 'the form lacks the file, in the field "file"');
          const { id, sizeBytes } = file.blob.value satisfies KeptNode;
          const named = { hash: id.text, name: id.text, size: sizeBytes };
          // Kept already, for the grace period: the client's until a message keeps it.
          await rooms.uploads.note(rooms.standingOf(request), id.text, sizeBytes);
          const accepted = file.blob.accepted ?? (await readMetadata(rooms, fields));
          if (accepted)
            return submitStore(reply, accepted, id.text, named, () => rooms.pipeline.submit(accepted));
          return { status: 'success' as const, ...named };
        },
      ),
  );

  await app.register(async (child) => {
    const scope = child as HttpServer;
    readBodiesAsBytes(scope);
    scope.post(
      '/ipfs/pin',
      {
        schema: {
          summary: 'Ask that something of IPFS be kept: pending until all of it is here',
          response: { 200: AppliedView, 202: PendingView },
        },
        config: takesSigned(
          { type: 'IPFS_PIN', content: IpfsPinContent },
          'FILE_NOT_FOUND',
          'MESSAGE_FORGOTTEN',
        ),
      },
      async (request, reply) => {
        const cursor = await rooms.events.lastCursor();
        const submitted = await submitBody(rooms, request.body, { type: 'IPFS_PIN' });
        const { message, outcome } = submitted;
        if (outcome.status !== 'pending' || rooms.settings.ipfsPinWaitMs === 0)
          return answerSubmitted(reply, submitted);
        await waitForPin(rooms, message.itemHash, cursor);
        const row = await findMessage(rooms.db, message.itemHash);
        const now = row ? { status: row.status, reason: row.reason } : outcome;
        return answerSubmitted(reply, { message, outcome: now });
      },
    );
    scope.post(
      '/ipfs/add_json',
      {
        schema: {
          summary:
            'Add a JSON body to IPFS as a file; it goes after a grace period unless a message keeps it',
          response: { 200: ADDED },
        },
        config: takesBody(
          'general',
          { contentType: 'application/json', schema: {} },
          'FILE_TOO_LARGE',
          ...WRITES_IPFS,
        ),
        bodyLimit: LIMITS.unpinnedJsonBytes,
      },
      async (request, reply) => {
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        checkJson(body);
        const standing = rooms.standingOf(request);
        const held = await rooms.uploads.beginUnpinned(standing, body.length);
        try {
          const { id, sizeBytes } = await rooms.ipfs.add(Readable.from([body]), {
            cidVersion: 0,
            limitBytes: LIMITS.unpinnedJsonBytes,
            signal: closing(reply),
          });
          await rooms.uploads.note(standing, id.text, sizeBytes);
          return { status: 'success' as const, hash: id.text };
        } finally {
          held.release();
        }
      },
    );
  });
}
