import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, SubmitView } from '@skerry/protocol';
import Type from 'typebox';
import { takesBody } from './declare.ts';
import type { Rooms } from './rooms.ts';
import { DEFAULT_CHANNEL, fieldsOf, formOptions, withForm } from './storage-form.ts';
import { storageReadRoutes } from './storage-read.ts';
import { readBodiesAsBytes } from './submission.ts';

const StoredView = Type.Object({
  ...SubmitView.properties,
  item_hash: Type.String({
    description: 'the STORE message that keeps the file; GET /storage/{hash} takes it',
  }),
  file_hash: Type.String({ description: "the file's SHA-256; GET /storage/{hash} takes it, too" }),
});
const AddedView = Type.Object({ status: Type.Literal('success'), hash: Type.String() });

const UPLOAD_BODY = {
  contentType: 'multipart/form-data',
  schema: {
    type: 'object',
    properties: {
      file: { type: 'string', format: 'binary' },
      address: { type: 'string', description: 'who signs' },
      signature: { type: 'string', description: "over the file's SHA-256 as 64 hexadecimal digits" },
      channel: { type: 'string', default: DEFAULT_CHANNEL },
      tags: { type: 'string', description: 'comma-separated' },
    },
    required: ['file', 'address', 'signature'],
    additionalProperties: false,
  },
};
const ANY_JSON = { contentType: 'application/json', schema: {} };
const UPLOAD_ERRORS = [
  'INVALID_PARAMETERS',
  'UNKNOWN_FIELD',
  'INVALID_ADDRESS',
  'SIGNATURE_REQUIRED',
  'INVALID_SIGNATURE',
  'FILE_TOO_LARGE',
  'MESSAGE_FORGOTTEN',
  'STORAGE_FULL',
  'STORAGE_UNAVAILABLE',
  'OVERLOADED',
] as const;

/** The bytes are kept as they came; they must be one JSON value in UTF-8 (RFC 8259). */
export function checkJson(body: Buffer): void {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw new AppError('INVALID_JSON', 'the body is not JSON', { cause: error });
  }
}

/** Storage (specification, "Storage"): upload and download. */
export async function storageRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  await app.register(multipart, formOptions);

  app.post(
    '/storage/store',
    {
      schema: {
        summary: 'Upload a file (multipart: file, address, signature over its hash, channel, tags)',
        response: { 200: StoredView },
      },
      config: {
        ...takesBody('authenticated', UPLOAD_BODY, ...UPLOAD_ERRORS),
        slowAfterMs: Infinity,
        watchesItsBody: true,
      },
      bodyLimit: Number.MAX_SAFE_INTEGER,
    },
    (request, reply) =>
      withForm(request, reply, rooms, async ({ file, fields }) => {
        if (!file) throw new AppError('INVALID_PARAMETERS', 'the form lacks the file, in the field "file"');
        const stored = await rooms.files.store(file.blob, file.contentType, fieldsOf(fields));
        const { messageHash, outcome } = stored;
        if (outcome.status === 'forgotten')
          throw new AppError(
            'MESSAGE_FORGOTTEN',
            `its owner forgot this file: ${outcome.reason?.message ?? ''}`,
          );
        return { item_hash: messageHash, status: 'success' as const, file_hash: file.blob.hash };
      }),
  );

  await app.register(async (child) => {
    const scope = child as HttpServer;
    readBodiesAsBytes(scope);
    scope.post(
      '/storage/add_json',
      {
        schema: {
          summary: 'Keep a JSON body as a file; it goes after a grace period unless a message keeps it',
          response: { 200: AddedView },
        },
        config: takesBody('general', ANY_JSON, 'UPLOAD_SHARE_USED', 'STORAGE_FULL', 'STORAGE_UNAVAILABLE'),
        bodyLimit: LIMITS.unpinnedJsonBytes,
      },
      async (request) => {
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        checkJson(body);
        const standing = rooms.standingOf(request);
        const held = await rooms.uploads.beginUnpinned(standing, body.length);
        try {
          const blob = await rooms.files.receive(Readable.from([body]), LIMITS.unpinnedJsonBytes);
          try {
            await rooms.files.storeUnpinned(blob, 'application/json');
          } finally {
            await blob.discard();
          }
          await rooms.uploads.note(standing, blob.hash, blob.sizeBytes);
          return { status: 'success' as const, hash: blob.hash };
        } finally {
          held.release();
        }
      },
    );
  });

  await storageReadRoutes(app, rooms);
}
