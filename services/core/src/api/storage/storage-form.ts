import type { Readable } from 'node:stream';
import multipart, { type MultipartFile, type MultipartValue } from '@fastify/multipart';
import { endsWithAnswer, type HttpServer, type ServeOptions } from '@skerry/kit';
import { AppError, LIMITS } from '@skerry/protocol';
import { FILE_CHANNEL_DEFAULT } from '@skerry/protocol/api/core/storage';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Verdict } from '../../intake/accepted.ts';
import type { UploadFields } from '../../intake/upload.ts';
import type { ReceivedBlob } from '../../store/files/blob-store.ts';
import type { Rooms } from '../rooms.ts';
import { closing } from '../shares/closing.ts';
import { sendingLine } from '../shares/flows.ts';

const FIELDS: readonly string[] = ['address', 'signature', 'channel', 'tags'];
const FIELD_BYTES_MAX = 16_384;
const CONTENT_TYPE = /^[a-zA-Z0-9!#$&^_.+-]{1,127}\/[a-zA-Z0-9!#$&^_.+-]{1,127}$/;
const DEFAULT_CONTENT_TYPE = 'application/octet-stream';
/** What a form adds to its file: fields, boundaries, heads of parts. */
export const FORM_OVERHEAD_BYTES = 1024 * 1024;
/** Limits of the multipart parser. A part of the name `file` is the file, also where it has neither file name nor type. */
const formOptions = {
  throwFileSizeLimit: false,
  isPartAFile: (fieldName: string | undefined, _contentType: string | undefined, fileName?: string) =>
    fieldName === 'file' || fileName !== undefined,
  limits: {
    files: 2,
    fields: 16,
    parts: 20,
    fieldSize: FIELD_BYTES_MAX,
    // The blob store counts, and stops at once; the parser would go on to read to the end.
    fileSize: Number.MAX_SAFE_INTEGER,
    headerPairs: 64,
  },
};

async function parseForms(scope: HttpServer): Promise<void> {
  await scope.register(multipart, formOptions);
}

/** An upload takes its time, and is watched here (`withPlace`). */
const UPLOAD = { slowAfterMs: Infinity, watchesItsBody: true };

/** How a form is served. */
export const FORM_OPTIONS: ServeOptions = { config: UPLOAD, parsers: parseForms };

/** A body of this type, where one is taken beside a form, is the file. */
export const FILE_BODY_TYPE = 'application/octet-stream';

/** How a form is served in whose place the file alone may come. */
export const FORM_OR_FILE_OPTIONS: ServeOptions = {
  config: UPLOAD,
  async parsers(scope) {
    await parseForms(scope);
    scope.addContentTypeParser(FILE_BODY_TYPE, (_request, payload, done) => done(null, payload));
  },
};

/** How a file is served that comes alone. */
export const FILE_OPTIONS: ServeOptions = {
  config: UPLOAD,
  async parsers(scope) {
    scope.addContentTypeParser(FILE_BODY_TYPE, (_request, payload, done) => done(null, payload));
  },
};

/** What a form's file became. */
export interface FormFile<Received> {
  readonly blob: Received;
  readonly contentType: string;
}

export interface Form<Received = ReceivedBlob> {
  readonly fields: Map<string, string>;
  file: FormFile<Received> | undefined;
}

/** Which fields a form has beside its file, and what its file is given to while it comes. */
export interface FormReader<Received> {
  readonly fields: readonly string[];
  readonly receive: (source: Readable, fields: ReadonlyMap<string, string>) => Promise<Received>;
  /** Whatever happened. */
  readonly discard: (received: Received) => Promise<void>;
}

/** What a request says to have; undefined where it does not. What a form has beside its file is little. */
export const announcedBytes = ({ headers }: FastifyRequest): number | undefined =>
  headers['content-length'] === undefined ? undefined : Number(headers['content-length']);

const uploadReader = (
  { files }: Pick<Rooms, 'files'>,
  request: FastifyRequest,
): FormReader<ReceivedBlob> => ({
  fields: FIELDS,
  receive: (source) => files.receive(source, files.limitBytes, announcedBytes(request)),
  discard: (blob) => blob.discard(),
});

const invalid = (message: string, cause?: unknown) => new AppError('INVALID_PARAMETERS', message, { cause });

export function fieldsOf(given: ReadonlyMap<string, string>): UploadFields {
  for (const name of ['address', 'signature'] as const) {
    if (!given.get(name)) throw new AppError('SIGNATURE_REQUIRED', `the form lacks the field ${name}`);
  }
  const channel = given.get('channel') || FILE_CHANNEL_DEFAULT;
  const tags = (given.get('tags') ?? '')
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  if (channel.length > LIMITS.channelChars)
    throw invalid(`channel is longer than ${LIMITS.channelChars} characters`);
  if (/\0/.test(tags.join())) throw invalid('tags may not hold NUL characters');
  return { address: given.get('address')!, signature: given.get('signature')!, channel, tags };
}

function noteField(
  fields: readonly string[],
  form: Form<unknown>,
  { fieldname, value, valueTruncated }: MultipartValue,
): void {
  // The parser's types do not say that a part may have no name.
  if (!fieldname) throw invalid(`a part of the form has no name; fields: file, ${fields.join(', ')}`);
  if (valueTruncated) throw invalid(`the field ${fieldname} is longer than ${FIELD_BYTES_MAX} bytes`);
  if (!fields.includes(fieldname)) {
    throw new AppError(
      'UNKNOWN_FIELD',
      `the form has no field ${JSON.stringify(fieldname.slice(0, 64))}; fields: file, ${fields.join(', ')}`,
    );
  }
  if (form.fields.has(fieldname)) throw invalid(`the form has the field ${fieldname} twice`);
  form.fields.set(fieldname, String(value));
}

/** What became of the message that an upload stands for. Throws MESSAGE_FORGOTTEN, and what it was rejected for. */
export function checkStored({ status, reason }: Verdict): void {
  if (status === 'forgotten')
    throw new AppError('MESSAGE_FORGOTTEN', `its owner forgot this file: ${reason?.message ?? ''}`);
  if (status === 'rejected' && reason) throw new AppError(reason.code, reason.message);
}

/** The type that an uploader names, if it is one. */
export const asContentType = (text: string) =>
  CONTENT_TYPE.test(text) ? text.toLowerCase() : DEFAULT_CONTENT_TYPE;

async function receiveFile<Received>(
  part: MultipartFile,
  form: Form<Received>,
  reader: FormReader<Received>,
): Promise<FormFile<Received>> {
  try {
    const blob = await reader.receive(part.file, form.fields);
    return {
      blob,
      contentType: asContentType(part.mimetype),
    };
  } catch (error) {
    // The parser ends the file with an error where the form breaks off within it.
    throw error === part.file.errored ? invalid('the form breaks off within the file', error) : error;
  }
}

async function* partsOf(request: FastifyRequest): AsyncGenerator<MultipartFile | MultipartValue> {
  const parts = request.parts();
  for (;;) {
    let next: Awaited<ReturnType<typeof parts.next>>;
    try {
      next = await parts.next();
    } catch (error) {
      throw invalid(`the form is malformed: ${(error as Error).message.slice(0, 200)}`, error);
    }
    if (next.done) return;
    yield next.value as MultipartFile | MultipartValue;
  }
}

/** Reads the form part by part, the file straight to disk, in whatever order the parts come. */
async function readParts<Received>(
  request: FastifyRequest,
  form: Form<Received>,
  reader: FormReader<Received>,
): Promise<void> {
  for await (const part of partsOf(request)) {
    if (part.type === 'field') noteField(reader.fields, form, part);
    else if (part.fieldname !== 'file' || form.file) {
      part.file.destroy();
      throw invalid('the form must have one file, in the field "file"');
    } else form.file = await receiveFile(part, form, reader);
  }
}

type FormRooms = Pick<Rooms, 'settings' | 'uploadPlaces' | 'clientOf'>;

/**
 * Reads an upload and gives it to `act`; whatever happens, nothing of it is left in the spool. An upload may last as
 * long as it goes on; one that is refused is answered at once.
 */
export const withForm = <T>(
  request: FastifyRequest,
  reply: FastifyReply,
  rooms: FormRooms & Pick<Rooms, 'files'>,
  act: (form: Form) => Promise<T>,
): Promise<T> => withFormOf(request, reply, rooms, uploadReader(rooms, request), act);

/**
 * Takes a place among the uploads for a body that `act` reads, and watches over it. One that gives its place away, or sends nothing, is
 * answered at once; what reads it hears of the end of its connection, which follows.
 */
export async function withPlace<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  { uploadPlaces, clientOf }: Pick<FormRooms, 'uploadPlaces' | 'clientOf'>,
  act: () => Promise<T>,
): Promise<T> {
  using place = await uploadPlaces.take(clientOf(request), closing(reply));
  const refused = Promise.withResolvers<never>();
  const refuse = (error: AppError) => {
    endsWithAnswer(reply);
    // Of a request that is answered Node says no more, not even that its connection is gone.
    request.raw.socket.once('close', () => request.raw.destroy(error));
    refused.reject(error);
  };
  place.watch(sendingLine(request, refuse));
  return await Promise.race([act(), refused.promise]);
}

/** The same for a form of other fields, or with another place for its file. */
export const withFormOf = <Received, T>(
  request: FastifyRequest,
  reply: FastifyReply,
  { settings, ...rooms }: FormRooms,
  reader: FormReader<Received>,
  act: (form: Form<Received>) => Promise<T>,
): Promise<T> =>
  withPlace(request, reply, rooms, async () => {
    const { uploadLimitBytes } = settings;
    if (!request.isMultipart())
      throw new AppError('UNSUPPORTED_MEDIA_TYPE', 'an upload is multipart/form-data');
    if (Number(request.headers['content-length'] ?? 0) > uploadLimitBytes + FORM_OVERHEAD_BYTES)
      throw new AppError('FILE_TOO_LARGE', `a file may have at most ${uploadLimitBytes} bytes here`);
    const form: Form<Received> = { fields: new Map(), file: undefined };
    try {
      await readParts(request, form, reader);
      return await act(form);
    } finally {
      if (form.file) await reader.discard(form.file.blob);
    }
  });
