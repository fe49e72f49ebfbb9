import type { ErrorCode } from '../../errors.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, Bytes, NO_PARAMETERS } from '../operation.ts';
import { reads } from './common/declare.ts';
import { FileHash, fileView } from './storage.ts';

/** What the signed message beside a file may be refused with. */
export const STORE_ERRORS = [
  'INVALID_JSON',
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
  'CREDIT_INSUFFICIENT',
  'MESSAGE_FORGOTTEN',
  'UPLOAD_SHARE_USED',
  'STORAGE_FULL',
  'OVERLOADED',
] as const satisfies readonly ErrorCode[];

const AddForm = Type.Object(
  {
    metadata: Type.Optional(
      Type.String({
        description:
          'JSON: {message, sync}, a signed STORE message; if it comes before the file, the file may be larger',
      }),
    ),
    file: Bytes,
  },
  { title: 'FileWithMessage', additionalProperties: false },
);

/** `pending`: the message lacks something that may still come. */
export const AddedStatus = Type.Union([Type.Literal('success'), Type.Literal('pending')]);

const AddedFileView = Type.Object(
  { status: AddedStatus, hash: Type.String({ description: "the file's SHA-256" }) },
  { title: 'AddedFile' },
);

const FileReferenceView = Type.Object(
  {
    ref: Type.String({ description: 'the item hash of the first STORE message, or the name' }),
    owner: Type.String(),
    ...fileView,
  },
  { title: 'FileReference' },
);
export type FileReferenceView = Static<typeof FileReferenceView>;

/** What deployed nodes take and answer about files beside the specification's paths. */
export const NETWORK_STORAGE_API = {
  addFile: {
    method: 'POST',
    path: '/api/v0/storage/add_file',
    summary: 'Upload a file, as multipart (metadata with a signed STORE message, then file) or as a raw body',
    ...reads(...STORE_ERRORS, 'STORAGE_UNAVAILABLE'),
    body: { kind: 'stream', content: { 'multipart/form-data': AddForm, 'application/octet-stream': Bytes } },
    answers: { 200: AddedFileView, 202: AddedFileView },
    deployed: {
      differs: '`metadata` raises the size limit only where it comes before the file, as the SDKs send it',
    },
  },
  getFileByMessage: {
    method: 'GET',
    path: '/api/v0/storage/by-message-hash/:hash',
    summary: 'Find the file of a STORE message',
    ...reads('INVALID_HASH', 'FILE_NOT_FOUND'),
    params: Type.Object({ hash: Type.String({ description: 'item hash' }) }),
    query: NO_PARAMETERS,
    answers: { 200: FileReferenceView },
    deployed: {},
  },
  getFileByRef: {
    method: 'GET',
    path: '/api/v0/storage/by-ref/:ref',
    summary: 'Find the newest version of a file by its first STORE message',
    ...reads('INVALID_HASH', 'FILE_NOT_FOUND', 'LIST_TOO_COSTLY'),
    params: Type.Object({
      ref: Type.String({
        description: 'item hash of the first STORE message; a name is asked for with its owner',
      }),
    }),
    query: NO_PARAMETERS,
    answers: { 200: FileReferenceView },
    deployed: {},
  },
  getFileByName: {
    method: 'GET',
    path: '/api/v0/storage/by-ref/:address/:ref',
    summary: 'Find the newest version of a file by its owner and name',
    ...reads('FILE_NOT_FOUND', 'LIST_TOO_COSTLY'),
    params: Type.Object({
      address: Type.String({ description: 'the owner, in any spelling of its chain' }),
      ref: Type.String({ description: 'the `ref` of its STORE messages' }),
    }),
    query: NO_PARAMETERS,
    answers: { 200: FileReferenceView },
    deployed: {},
  },
  countFileMessages: {
    method: 'GET',
    path: '/api/v0/storage/count/:hash',
    query: NO_PARAMETERS,
    summary: 'Count the messages that keep a file',
    ...reads('INVALID_HASH', 'LIST_TOO_COSTLY'),
    params: Type.Object({ hash: FileHash }),
    answers: { 200: Type.Integer() },
    deployed: {},
  },
} as const satisfies Api;
