import multipart, { type MultipartFile } from '@fastify/multipart';
import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, parseItemHash, SubmitView } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { ReceivedBlob } from '../files/blob-store.ts';
import type { UploadFields } from '../files/upload.ts';
import { reads, takesBody } from './declare.ts';
import type { Rooms } from './rooms.ts';

const DEFAULT_CHANNEL = 'skerry';
const FIELDS = ['address', 'signature', 'channel', 'tags'] as const;
const FIELD_BYTES_MAX = 16_384;
const CONTENT_TYPE = /^[a-zA-Z0-9!#$&^_.+-]{1,127}\/[a-zA-Z0-9!#$&^_.+-]{1,127}$/;
const DEFAULT_CONTENT_TYPE = 'application/octet-stream';

const HashParams = Type.Object({ hash: Type.String() });
const StoredView = Type.Object({
  ...SubmitView.properties,
  item_hash: Type.String({ description: "the file's SHA-256: its name in GET /storage/{hash}" }),
  message_hash: Type.String({ description: 'the STORE message that keeps it' }),
});

const BytesView = {
  description: 'the bytes',
  content: { '*/*': { schema: { type: 'string', format: 'binary' } } },
};
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
const UPLOAD_ERRORS = [
  'INVALID_PARAMETERS',
  'UNKNOWN_FIELD',
  'INVALID_ADDRESS',
  'SIGNATURE_REQUIRED',
  'INVALID_SIGNATURE',
  'FILE_TOO_LARGE',
  'STORAGE_FULL',
  'OVERLOADED',
] as const;

function fieldsOf(given: ReadonlyMap<string, string>): UploadFields {
  for (const name of ['address', 'signature'] as const) {
    if (!given.get(name)) throw new AppError('SIGNATURE_REQUIRED', `the form lacks the field ${name}`);
  }
  const channel = given.get('channel') || DEFAULT_CHANNEL;
  const tags = (given.get('tags') ?? '')
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  if (channel.length > LIMITS.channelChars)
    throw new AppError('INVALID_PARAMETERS', `channel is longer than ${LIMITS.channelChars} characters`);
  if (/\0/.test(channel + tags.join()))
    throw new AppError('INVALID_PARAMETERS', 'channel and tags may not hold NUL characters');
  return { address: given.get('address')!, signature: given.get('signature')!, channel, tags };
}

interface Form {
  readonly fields: Map<string, string>;
  file: { blob: ReceivedBlob; contentType: string } | undefined;
}

function noteField(form: Form, name: string, value: unknown): void {
  if (!(FIELDS as readonly string[]).includes(name)) {
    throw new AppError(
      'UNKNOWN_FIELD',
      `the form has no field ${JSON.stringify(name.slice(0, 64))}; fields: file, ${FIELDS.join(', ')}`,
    );
  }
  if (form.fields.has(name)) throw new AppError('INVALID_PARAMETERS', `the form has the field ${name} twice`);
  form.fields.set(name, String(value));
}

async function receiveFile(part: MultipartFile, rooms: Rooms): Promise<NonNullable<Form['file']>> {
  const blob = await rooms.files.receive(part.file);
  if (part.file.truncated) {
    await blob.discard();
    throw new AppError('FILE_TOO_LARGE', `a file may have ${rooms.settings.uploadLimitBytes} bytes here`);
  }
  return {
    blob,
    contentType: CONTENT_TYPE.test(part.mimetype) ? part.mimetype.toLowerCase() : DEFAULT_CONTENT_TYPE,
  };
}

/** Reads the form part by part, the file straight to disk, in whatever order the parts come. */
async function readForm(request: FastifyRequest, rooms: Rooms, form: Form): Promise<void> {
  for await (const part of request.parts()) {
    if (part.type === 'field') {
      if (part.valueTruncated)
        throw new AppError(
          'INVALID_PARAMETERS',
          `the field ${part.fieldname} is longer than ${FIELD_BYTES_MAX} bytes`,
        );
      noteField(form, part.fieldname, part.value);
    } else {
      if (part.fieldname !== 'file' || form.file) {
        part.file.resume();
        throw new AppError('INVALID_PARAMETERS', 'the form must have one file, in the field "file"');
      }
      form.file = await receiveFile(part, rooms);
    }
  }
}

/** Bytes of strangers: never run as a page of this origin, cached for ever since their name is their hash. */
async function sendFile(
  rooms: Rooms,
  hash: string,
  reply: FastifyReply,
  contentType?: string,
): Promise<FastifyReply> {
  const file = await rooms.files.get(parseItemHash(hash));
  return reply
    .headers({
      'content-type': contentType ?? file.contentType,
      'content-length': file.sizeBytes,
      etag: `"${file.hash}"`,
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    })
    .send(file.open());
}

/** Storage: upload and download (specification, "Storage"). */
export async function storageRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  await app.register(multipart, {
    throwFileSizeLimit: false,
    limits: {
      files: 2,
      fields: 16,
      parts: 20,
      fieldSize: FIELD_BYTES_MAX,
      fileSize: rooms.settings.uploadLimitBytes,
      headerPairs: 64,
    },
  });

  app.post(
    '/storage/store',
    {
      schema: {
        summary: 'Upload a file (multipart: file, address, signature over its hash, channel, tags)',
        response: { 200: StoredView },
      },
      // The client sets the pace of an upload.
      config: {
        ...takesBody('authenticated', UPLOAD_BODY, ...UPLOAD_ERRORS),
        slowAfterMs: Number.POSITIVE_INFINITY,
      },
      bodyLimit: Number.MAX_SAFE_INTEGER,
    },
    async (request) => {
      if (!request.isMultipart())
        throw new AppError('UNSUPPORTED_MEDIA_TYPE', 'an upload is multipart/form-data');
      const form: Form = { fields: new Map(), file: undefined };
      try {
        await readForm(request, rooms, form);
        if (!form.file)
          throw new AppError('INVALID_PARAMETERS', 'the form lacks the file, in the field "file"');
        const { blob, contentType } = form.file;
        const { messageHash } = await rooms.files.store(blob, contentType, fieldsOf(form.fields));
        return { item_hash: blob.hash, status: 'success' as const, message_hash: messageHash };
      } finally {
        await form.file?.blob.discard();
      }
    },
  );

  app.get(
    '/storage/:hash',
    {
      schema: { summary: 'A file, with its content type', params: HashParams, response: { 200: BytesView } },
      config: reads('INVALID_HASH', 'FILE_NOT_FOUND'),
    },
    (request, reply) => sendFile(rooms, request.params.hash, reply),
  );

  app.get(
    '/storage/raw/:hash',
    {
      schema: { summary: "A file's bytes", params: HashParams, response: { 200: BytesView } },
      config: reads('INVALID_HASH', 'FILE_NOT_FOUND'),
    },
    (request, reply) => sendFile(rooms, request.params.hash, reply, DEFAULT_CONTENT_TYPE),
  );
}
