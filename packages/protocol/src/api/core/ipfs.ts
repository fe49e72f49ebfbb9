import Type, { type Static } from 'typebox';
import { IpfsPinContent } from '../../content/ipfs-pin.ts';
import type { ErrorCode } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { type Api, Bytes } from '../operation.ts';
import { reads, takesSigned } from './common/declare.ts';
import { SUBMISSION_ANSWERS } from './common/submission.ts';
import { AddedStatus, STORE_ERRORS } from './network-storage.ts';
import { IPFS_READ_ERRORS, partAnswers, readsBytes } from './storage.ts';

/** Entries of a directory in one answer. */
export const DIRECTORY_ENTRIES_MAX = 10_000;

const Cid = Type.String({ description: 'CID' });

export const IpfsDirectoryView = Type.Object(
  {
    hash: Cid,
    type: Type.Literal('directory'),
    entries: Type.Array(
      Type.Object({
        name: Type.String(),
        hash: Cid,
        size: Type.Integer({ description: 'bytes, as the directory says' }),
      }),
    ),
    complete: Type.Boolean({
      description: `false: there are more than the ${DIRECTORY_ENTRIES_MAX} that are shown`,
    }),
  },
  { title: 'IpfsDirectory' },
);
export type IpfsDirectoryView = Static<typeof IpfsDirectoryView>;

const AddedIpfsFileView = Type.Object(
  {
    status: AddedStatus,
    hash: Cid,
    name: Type.Optional(Type.String({ description: 'the same' })),
    size: Type.Optional(Type.Integer({ description: 'bytes' })),
  },
  { title: 'AddedIpfsFile' },
);

const AddForm = Type.Object(
  {
    metadata: Type.Optional(
      Type.String({
        description: 'JSON: {message, sync}, a signed STORE message of the network form with item_type ipfs',
      }),
    ),
    file: Bytes,
  },
  { title: 'IpfsFileWithMessage', additionalProperties: false },
);

const FormatQuery = Type.Object(
  {
    format: Type.Optional(
      Type.Literal('raw', { description: 'the block itself, where it is kept here (trustless gateway)' }),
    ),
  },
  { additionalProperties: false },
);

const WRITE_ERRORS = [
  'UPLOAD_SHARE_USED',
  'STORAGE_FULL',
  'STORAGE_UNAVAILABLE',
  ...IPFS_READ_ERRORS,
] as const satisfies readonly ErrorCode[];

const readAnswers = {
  200: {
    description: 'the bytes of a file, or the entries of a directory',
    content: { '*/*': Bytes, 'application/json': IpfsDirectoryView },
  },
  ...partAnswers,
};

const EMPTY_DIRECTORY = 'QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn';

/** IPFS (specification, "IPFS"), and what deployed nodes take for it. */
export const IPFS_API = {
  getIpfsFile: {
    method: 'GET',
    also: ['HEAD'],
    path: '/api/v0/ipfs/:hash',
    summary: 'Get an IPFS file with its content type, or the entries of a directory',
    ...readsBytes(),
    params: Type.Object({ hash: Cid }),
    query: FormatQuery,
    answers: readAnswers,
    example: {
      params: { hash: EMPTY_DIRECTORY },
      answer: { hash: EMPTY_DIRECTORY, type: 'directory', entries: [], complete: true },
    },
  },
  getIpfsPath: {
    method: 'GET',
    also: ['HEAD'],
    path: '/api/v0/ipfs/:hash/*',
    summary: 'Get a file or directory at a path inside an IPFS directory',
    ...readsBytes(),
    params: Type.Object({
      hash: Cid,
      '*': Type.String({ description: 'path below it, separated by slashes' }),
    }),
    query: FormatQuery,
    answers: readAnswers,
  },
  addIpfsFile: {
    method: 'POST',
    path: '/api/v0/ipfs/add_file',
    summary: 'Add a file to IPFS (multipart: metadata with a signed STORE message, file)',
    ...reads(...STORE_ERRORS, ...WRITE_ERRORS),
    body: { kind: 'form', fields: AddForm },
    answers: { 200: AddedIpfsFileView, 202: AddedIpfsFileView },
    deployed: {},
  },
  pinToIpfs: {
    method: 'POST',
    path: '/api/v0/ipfs/pin',
    summary: 'Pin an IPFS item; pending until all of it has been fetched',
    ...takesSigned({ type: 'IPFS_PIN', content: IpfsPinContent }, 'FILE_NOT_FOUND', 'MESSAGE_FORGOTTEN'),
    answers: SUBMISSION_ANSWERS,
  },
  addIpfsJson: {
    method: 'POST',
    path: '/api/v0/ipfs/add_json',
    summary: 'Add a JSON body to IPFS as a file; removed after a grace period unless a message keeps it',
    ...reads('INVALID_JSON', 'FILE_TOO_LARGE', ...WRITE_ERRORS),
    body: {
      kind: 'bytes',
      contentType: 'application/json',
      description: 'any JSON value; its bytes are kept as they come',
      limitBytes: LIMITS.unpinnedJsonBytes,
    },
    answers: { 200: AddedIpfsFileView },
    deployed: {
      differs: 'the bytes are kept as they are sent; deployed nodes write the JSON anew, with sorted keys',
    },
  },
} as const satisfies Api;
