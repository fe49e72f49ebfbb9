import type { ErrorCode } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { type Static, Type } from '../../type.ts';
import { SubmitView } from '../../views.ts';
import { type Api, Bytes, content, defaulted, NO_PARAMETERS, orNull } from '../operation.ts';
import { answersFromMemory, reads } from './common/declare.ts';

/** What reading by CID may be answered with. */
export const IPFS_READ_ERRORS = [
  'CID_NOT_FOUND',
  'NOT_UNIXFS',
  'IPFS_UNAVAILABLE',
  'IPFS_TIMEOUT',
  'OVERLOADED',
] as const satisfies readonly ErrorCode[];

/** Gives the bytes of a file, or a part of them. */
export const readsBytes = () =>
  reads(
    'INVALID_HASH',
    'FILE_NOT_FOUND',
    'FILE_TOO_LARGE',
    'PRECONDITION_FAILED',
    'RANGE_NOT_SATISFIABLE',
    'STORAGE_UNAVAILABLE',
    ...IPFS_READ_ERRORS,
  );

/** Answers to conditions and ranges (RFC 9110, sections 13 and 14). */
export const partAnswers = {
  206: content('the part of them that Range asks for', '*/*'),
  304: { description: 'the caller already has it', content: {} },
};
const bytesAnswers = { 200: content('the bytes', '*/*'), ...partAnswers };

/** The channel of a file's message where its sender names none. */
export const FILE_CHANNEL_DEFAULT = 'skerry';

const UploadForm = Type.Object(
  {
    file: Bytes,
    address: Type.String({ description: 'who signs' }),
    signature: Type.String({ description: "over the file's SHA-256 as 64 hexadecimal digits" }),
    channel: Type.Optional(defaulted(Type.String(), FILE_CHANNEL_DEFAULT)),
    tags: Type.Optional(Type.String({ description: 'comma-separated' })),
  },
  { title: 'FileUpload', additionalProperties: false },
);

export const StoredFileView = Type.Object(
  {
    ...SubmitView.properties,
    item_hash: Type.String({
      description: 'the STORE message that keeps the file; GET /storage/{hash} takes it',
    }),
    file_hash: Type.String({ description: "the file's SHA-256; GET /storage/{hash} takes it, too" }),
  },
  { title: 'StoredFile' },
);
export type StoredFileView = Static<typeof StoredFileView>;

export const FileHash = Type.String({
  description: 'SHA-256 or CID of the file, or item hash of its STORE message',
});
const HashParams = Type.Object({ hash: FileHash });

/** What is said of a file without its bytes. */
export const fileView = {
  file_hash: Type.String({ description: 'SHA-256 or CID' }),
  size: Type.Integer({ description: 'bytes' }),
  download_url: Type.String({ description: 'path below this host' }),
};

const FileMetadataView = Type.Object({ ...fileView, type: Type.Literal('file') }, { title: 'FileMetadata' });

const FileLimitsView = Type.Object(
  {
    storage: Type.Object({
      max_file_size: Type.Integer({ description: 'bytes, for POST /storage/store' }),
      max_unauthenticated_upload_file_size: Type.Integer({
        description: 'bytes, for POST /storage/add_file without a message',
      }),
    }),
    ipfs: Type.Object({
      max_upload_file_size: Type.Integer(),
      max_upload_car_size: Type.Integer(),
      max_unauthenticated_upload_file_size: Type.Integer(),
    }),
  },
  { title: 'FileLimits' },
);

/** Files (specification, "Storage"; docs/api.md). */
export const STORAGE_API = {
  storeFile: {
    method: 'POST',
    path: '/api/v0/storage/store',
    summary: 'Upload a file (multipart: file, address, signature over its hash, channel, tags)',
    rateClass: 'authenticated',
    body: { kind: 'form', fields: UploadForm },
    answers: { 200: StoredFileView },
    errors: [
      'DATABASE_UNAVAILABLE',
      'UNKNOWN_FIELD',
      'INVALID_ADDRESS',
      'INVALID_ENVELOPE',
      'INVALID_CONTENT',
      'SIGNATURE_REQUIRED',
      'INVALID_SIGNATURE',
      'FILE_TOO_LARGE',
      'CREDIT_INSUFFICIENT',
      'MESSAGE_FORGOTTEN',
      'STORAGE_FULL',
      'STORAGE_UNAVAILABLE',
      'OVERLOADED',
    ],
  },
  addJson: {
    method: 'POST',
    path: '/api/v0/storage/add_json',
    summary: 'Upload a JSON body as a file; removed after a grace period unless a message keeps it',
    ...reads('INVALID_JSON', 'UPLOAD_SHARE_USED', 'STORAGE_FULL', 'STORAGE_UNAVAILABLE'),
    body: {
      kind: 'bytes',
      contentType: 'application/json',
      description: 'any JSON value; its bytes are kept as they come',
      limitBytes: LIMITS.unpinnedJsonBytes,
    },
    answers: {
      200: Type.Object({
        status: Type.Literal('success'),
        hash: Type.String({ description: "the file's SHA-256" }),
      }),
    },
    deployed: {
      differs: 'the bytes are kept as they are sent; deployed nodes write the JSON anew, with sorted keys',
    },
  },
  getFile: {
    method: 'GET',
    also: ['HEAD'],
    path: '/api/v0/storage/:hash',
    summary:
      'A file, with its content type; as JSON {status, hash, engine, content}, its bytes in base64, where Accept asks for application/json first',
    ...readsBytes(),
    params: HashParams,
    answers: bytesAnswers,
    deployed: {
      differs: 'bytes unless `Accept` prefers JSON, as the specification requires; the SDK asks for JSON',
    },
  },
  getRawFile: {
    method: 'GET',
    also: ['HEAD'],
    path: '/api/v0/storage/raw/:hash',
    summary: 'Download a file',
    ...readsBytes(),
    params: HashParams,
    answers: {
      ...bytesAnswers,
      307: { description: 'where the object store gives the bytes out, for ten minutes', content: {} },
    },
    deployed: {
      differs: 'also takes ranges and conditions; may name the object store as the place of a large file',
    },
  },
  getFileMetadata: {
    method: 'GET',
    path: '/api/v0/storage/metadata/:hash',
    query: NO_PARAMETERS,
    summary: 'Get the size and download path of a file',
    ...reads('INVALID_HASH', 'FILE_NOT_FOUND', 'STORAGE_UNAVAILABLE', ...IPFS_READ_ERRORS),
    params: HashParams,
    answers: { 200: FileMetadataView },
    deployed: {},
  },
  getFileLimits: {
    method: 'GET',
    path: '/api/v0/storage/limits.json',
    summary: 'Get the upload limits',
    ...answersFromMemory(),
    answers: { 200: FileLimitsView },
    deployed: { differs: 'limits are those of this node' },
  },
} as const satisfies Api;

const WholeParams = Type.Object({
  hash: Type.String({ description: 'SHA-256 of the whole file, 64 hexadecimal digits' }),
});
const whole = {
  address: Type.String({ maxLength: 128, description: 'who signs the hash' }),
  size: Type.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'bytes of the whole file',
  }),
};

/** How far a file is that comes in parts. */
export const UploadView = Type.Object(
  {
    file_hash: Type.String(),
    size: Type.Integer({ description: 'bytes of the whole file' }),
    received: Type.Integer({ description: 'bytes that are here: where the next part begins' }),
    item_hash: orNull(Type.String(), {
      description: "this uploader's STORE message that keeps the file; null until all of it is here",
    }),
  },
  { title: 'Upload' },
);
export type UploadView = Static<typeof UploadView>;

/** Files in parts: what was sent before a connection broke is not sent again. */
export const UPLOADS_API = {
  getUpload: {
    method: 'GET',
    path: '/api/v0/storage/uploads/:hash',
    summary:
      'How much of a file is here that is sent in parts; 0 where it was not begun, all of it where its uploader ended it',
    tag: 'storage',
    rateClass: 'general',
    params: WholeParams,
    query: Type.Object(whole, { additionalProperties: false }),
    answers: { 200: UploadView },
    errors: ['DATABASE_UNAVAILABLE', 'INVALID_HASH', 'INVALID_ADDRESS'],
  },
  sendPart: {
    method: 'PUT',
    path: '/api/v0/storage/uploads/:hash',
    summary:
      'Send a file, or the rest of it: what comes is kept also where the connection breaks. A part that does not begin where the last one ended is left unread; `received` tells where to go on',
    tag: 'storage',
    rateClass: 'authenticated',
    params: WholeParams,
    query: Type.Object(
      {
        ...whole,
        signature: Type.String({
          maxLength: 1_024,
          description: "over the file's SHA-256 as 64 hexadecimal digits",
        }),
        offset: Type.Integer({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'where the part begins',
        }),
        content_type: defaulted(
          Type.String({ maxLength: 255, description: 'of the whole file' }),
          'application/octet-stream',
        ),
        channel: defaulted(
          Type.String({ maxLength: 256, description: 'of the message that keeps the file' }),
          FILE_CHANNEL_DEFAULT,
        ),
        tags: defaulted(
          Type.String({ maxLength: 16_384, description: 'of that message, separated by commas' }),
          '',
        ),
      },
      { additionalProperties: false },
    ),
    body: {
      kind: 'stream',
      limitBytes: Number.MAX_SAFE_INTEGER,
      content: { 'application/octet-stream': Bytes },
    },
    answers: { 200: UploadView },
    errors: [
      'DATABASE_UNAVAILABLE',
      'INVALID_HASH',
      'INVALID_ADDRESS',
      'INVALID_ENVELOPE',
      'INVALID_CONTENT',
      'SIGNATURE_REQUIRED',
      'INVALID_SIGNATURE',
      'HASH_MISMATCH',
      'FILE_TOO_LARGE',
      'CREDIT_INSUFFICIENT',
      'MESSAGE_FORGOTTEN',
      'STORAGE_FULL',
      'STORAGE_UNAVAILABLE',
      'OVERLOADED',
    ],
  },
} as const satisfies Api;
