import type { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { Held, HttpServer } from '@skerry/kit';
import { AppError, parseMessageHash } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import {
  countPins,
  type FileReference,
  findFileByMessageRef,
  findFileByName,
  findFileOfMessage,
} from '../files/references.ts';
import { isCidText } from '../ipfs/cid.ts';
import type { Accepted } from '../messages/accepted.ts';
import { checkType } from '../messages/intake.ts';
import type { Outcome } from '../messages/judged.ts';
import { reads, takesBody } from './declare.ts';
import { normalizeAddress } from './filters.ts';
import type { Rooms } from './rooms.ts';
import { type FormFile, type FormReader, formOptions, withFormOf } from './storage-form.ts';
import { unsignedLimitOf } from './storage-read.ts';

/** What deployed nodes take and answer about files beside the specification's paths. */

const PREFIX = '/api/v0';
const METADATA = 'metadata';
const BYTES = 'application/octet-stream';

/** What the signed message beside a file may be refused with. */
export const STORE_ERRORS = [
  'INVALID_PARAMETERS',
  'UNKNOWN_FIELD',
  'INVALID_ENVELOPE',
  'INVALID_CONTENT',
  'INVALID_HASH',
  'HASH_MISMATCH',
  'INVALID_ADDRESS',
  'SIGNATURE_REQUIRED',
  'INVALID_SIGNATURE',
  'UNKNOWN_CHAIN',
  'UNKNOWN_MESSAGE_TYPE',
  'TIMESTAMP_IN_FUTURE',
  'NOT_PERMITTED',
  'FILE_TOO_LARGE',
  'MESSAGE_FORGOTTEN',
  'UPLOAD_SHARE_USED',
  'STORAGE_FULL',
  'OVERLOADED',
] as const;

const ADD_BODY = {
  contentType: 'multipart/form-data',
  schema: {
    type: 'object',
    properties: {
      metadata: {
        type: 'string',
        description:
          'JSON: {message, sync}, a signed STORE message; before the file, which may be larger then',
      },
      file: { type: 'string', format: 'binary' },
    },
    required: ['file'],
    additionalProperties: false,
  },
};
const AddedView = Type.Object({
  status: Type.Union([Type.Literal('success'), Type.Literal('pending')]),
  hash: Type.String(),
});
const ReferenceView = Type.Object({
  ref: Type.String(),
  owner: Type.String(),
  file_hash: Type.String(),
  size: Type.Integer({ description: 'bytes' }),
  download_url: Type.String({ description: 'path below this host' }),
});

/** The message that came beside a file, verified. Undefined without one. Throws what verifying a message throws. */
export async function readMetadata(
  rooms: Rooms,
  fields: ReadonlyMap<string, string>,
): Promise<Accepted | undefined> {
  const text = fields.get(METADATA);
  if (text === undefined) return undefined;
  const message = await rooms.intake.verify(Buffer.from(text));
  checkType(message, 'STORE');
  return rooms.intake.accept(message);
}

/** A file that was received for somebody. */
export interface Guarded<T> {
  readonly value: T;
  /** The message that came with it. */
  readonly accepted: Accepted | undefined;
  /** Of the client's share, where none came; given back with the file. */
  readonly held: Held;
}

const NOTHING_HELD: Held = { release: () => {} };

/** What is taken at most of a file without a message, and how much of the client's share that is. */
function unsignedBytes(rooms: Rooms, { headers }: FastifyRequest): { limit: number; atMost: number } {
  const limit = unsignedLimitOf(rooms.settings);
  return { limit, atMost: Math.min(limit, Number(headers['content-length'] ?? limit)) };
}

/**
 * Receives a file with the message before it, or within the share of a client that sends none. The message is verified
 * before a byte of the file is kept.
 */
export const guardedReader = <T>(
  rooms: Rooms,
  request: FastifyRequest,
  receive: (source: Readable, limitBytes: number) => Promise<T>,
  discard: (value: T) => Promise<void>,
  checkSigned: () => Promise<void> = async () => {},
): FormReader<Guarded<T>> => ({
  fields: [METADATA],
  async receive(source, fields) {
    const accepted = await readMetadata(rooms, fields);
    if (accepted) {
      await checkSigned();
      const value = await receive(source, rooms.settings.uploadLimitBytes);
      return { value, accepted, held: NOTHING_HELD };
    }
    const { limit, atMost } = unsignedBytes(rooms, request);
    const held = await rooms.uploads.beginUnpinned(rooms.standingOf(request), atMost);
    try {
      return { value: await receive(source, limit), accepted, held };
    } catch (error) {
      held.release();
      throw error;
    }
  },
  async discard({ value, held }) {
    held.release();
    await discard(value);
  },
});

/** Submits the message of a file that is here now, and answers as deployed nodes do. */
export async function submitStore<T extends object>(
  reply: FastifyReply,
  accepted: Accepted,
  fileHash: string,
  answer: T,
  submit: (accepted: Accepted) => Promise<Outcome>,
) {
  if (accepted.subject !== fileHash) {
    throw new AppError('HASH_MISMATCH', `File hash does not match (${fileHash} != ${accepted.subject})`);
  }
  const { status, reason } = await submit(accepted);
  if (status === 'processed') return { status: 'success' as const, ...answer };
  if (status === 'pending') return reply.status(202).send({ status, ...answer });
  throw new AppError(reason?.code ?? 'MESSAGE_FORGOTTEN', reason?.message ?? 'the message was forgotten');
}

const viewOf = ({ ref, owner, fileHash, sizeBytes }: FileReference) => ({
  ref,
  owner,
  file_hash: fileHash,
  size: sizeBytes,
  download_url: `${PREFIX}/storage/raw/${fileHash}`,
});

function found(reference: FileReference | undefined, what: string) {
  if (!reference) throw new AppError('FILE_NOT_FOUND', `${what} names no file here`);
  return viewOf(reference);
}

type Received = Awaited<ReturnType<Rooms['files']['receive']>>;

export async function networkStorageRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const { db, files } = rooms;

  const keep = async (
    request: FastifyRequest,
    reply: FastifyReply,
    file: FormFile<Guarded<Received>> | undefined,
    fields: ReadonlyMap<string, string>,
  ) => {
    if (!file) throw new AppError('INVALID_PARAMETERS', 'the form lacks the file, in the field "file"');
    const { value: blob } = file.blob;
    const { hash, sizeBytes } = blob;
    // Deployed clients send it after the file.
    const accepted = file.blob.accepted ?? (await readMetadata(rooms, fields));
    if (accepted) {
      return submitStore(reply, accepted, hash, { hash }, () =>
        files.storeFor(blob, file.contentType, accepted),
      );
    }
    await files.storeUnpinned(blob, file.contentType);
    await rooms.uploads.note(rooms.standingOf(request), hash, sizeBytes);
    return { status: 'success' as const, hash };
  };

  await app.register(async (child) => {
    const scope = child as HttpServer;
    await scope.register(multipart, formOptions);
    // A body that is no form is the file.
    scope.addContentTypeParser(BYTES, (_request, payload, done) => done(null, payload));
    scope.post(
      '/storage/add_file',
      {
        schema: {
          summary: 'Keep a file (multipart: metadata with a signed STORE message, file), or a body of bytes',
          response: { 200: AddedView, 202: AddedView },
        },
        config: {
          ...takesBody('general', ADD_BODY, ...STORE_ERRORS, 'STORAGE_UNAVAILABLE'),
          slowAfterMs: Infinity,
          watchesItsBody: true,
        },
        bodyLimit: Number.MAX_SAFE_INTEGER,
      },
      async (request, reply) => {
        const reader = guardedReader(
          rooms,
          request,
          (source, limitBytes) => files.receive(source, limitBytes),
          (blob) => blob.discard(),
        );
        if (request.headers['content-type']?.startsWith(BYTES)) {
          const place = rooms.uploads.begin(rooms.standingOf(request));
          try {
            const blob = await reader.receive(request.body as Readable, new Map());
            try {
              return await keep(request, reply, { blob, contentType: BYTES }, new Map());
            } finally {
              await reader.discard(blob);
            }
          } finally {
            place.release();
          }
        }
        return withFormOf(request, reply, rooms, reader, ({ file, fields }) =>
          keep(request, reply, file, fields),
        );
      },
    );
  });

  app.get(
    '/storage/by-message-hash/:hash',
    {
      schema: {
        summary: 'The file of a STORE message',
        params: Type.Object({ hash: Type.String({ description: 'item hash' }) }),
        response: { 200: ReferenceView },
      },
      config: reads('INVALID_HASH', 'FILE_NOT_FOUND'),
    },
    async ({ params }) => {
      const { hash } = parseMessageHash(params.hash);
      return found(await findFileOfMessage(db, hash), `the message ${hash}`);
    },
  );
  app.get(
    '/storage/by-ref/:ref',
    {
      schema: {
        summary: 'The newest version of the file that a STORE message began',
        params: Type.Object({ ref: Type.String({ description: 'item hash of the first STORE message' }) }),
        response: { 200: ReferenceView },
      },
      config: reads('INVALID_HASH', 'FILE_NOT_FOUND'),
    },
    async ({ params }) => {
      const { hash } = parseMessageHash(params.ref);
      return found(await findFileByMessageRef(db, hash), `the message ${hash}`);
    },
  );
  app.get(
    '/storage/by-ref/:address/:ref',
    {
      schema: {
        summary: 'The newest file that an owner gave a name',
        params: Type.Object({
          address: Type.String(),
          ref: Type.String({ description: 'the `ref` of its STORE messages' }),
        }),
        response: { 200: ReferenceView },
      },
      config: reads('FILE_NOT_FOUND'),
    },
    async ({ params: { address, ref } }) =>
      found(await findFileByName(db, normalizeAddress(address), ref), `${ref} of ${address}`),
  );
  app.get(
    '/storage/count/:hash',
    {
      schema: {
        summary: 'How many messages keep a file',
        params: Type.Object({
          hash: Type.String({ description: 'SHA-256 or CID of the file, or item hash of a STORE message' }),
        }),
        response: { 200: Type.Integer() },
      },
      config: reads('INVALID_HASH'),
    },
    async ({ params }) => {
      if (isCidText(params.hash)) return countPins(db, params.hash);
      const { hash } = parseMessageHash(params.hash);
      return countPins(db, (await findFileOfMessage(db, hash))?.fileHash ?? hash);
    },
  );
}
