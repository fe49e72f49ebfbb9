import { IpfsPinContent } from '../../content/ipfs-pin.ts';
import type { ErrorCode } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, Bytes } from '../operation.ts';
import { asDeployed, reads, takesSigned } from './common/declare.ts';
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

const OfCar = (description: string) => ({ description: `format=car: ${description}` });
/** Longer than the longest byte range. */
const ENTITY_BYTES_CHARS = 40;
const FILE_NAME_CHARS = 255;

const CarForm = Type.Object(
  {
    metadata: Type.String({
      description:
        'JSON: {message, sync}, a signed STORE message with item_type ipfs, and the root of the CAR as its item_hash',
    }),
    file: Bytes,
  },
  { title: 'CarWithMessage', additionalProperties: false },
);

/** IPFS specifications, "Trustless Gateway", "Request Query Parameters". */
const IpfsReadQuery = Type.Object(
  {
    format: Type.Optional(
      Type.Enum(['raw', 'car'], {
        description:
          'what can be checked by the CID, from what is kept here: the block itself, or a CAR with it and what is below it; goes before Accept',
      }),
    ),
    'dag-scope': Type.Optional(
      Type.Enum(
        ['block', 'entity', 'all'],
        OfCar('the block at the end of the path, the file or directory there, or all below it'),
      ),
    ),
    'entity-bytes': Type.Optional(
      Type.String({
        ...OfCar(
          'the blocks of this part of a file, `from:to`; below zero counts from the end, * is the end',
        ),
        maxLength: ENTITY_BYTES_CHARS,
      }),
    ),
    'car-version': Type.Optional(Type.Literal('1', OfCar('its version'))),
    'car-order': Type.Optional(
      Type.Enum(['dfs', 'unk'], OfCar('order of the blocks; it is always depth first')),
    ),
    'car-dups': Type.Optional(Type.Literal('n', OfCar('no block comes twice'))),
    filename: Type.Optional(
      Type.String({
        description: 'format: the name under which a browser saves it',
        minLength: 1,
        maxLength: FILE_NAME_CHARS,
      }),
    ),
  },
  { additionalProperties: false },
);
export type IpfsReadQuery = Static<typeof IpfsReadQuery>;

const WRITE_ERRORS = [
  'UPLOAD_SHARE_USED',
  'STORAGE_FULL',
  'STORAGE_UNAVAILABLE',
  ...IPFS_READ_ERRORS,
] as const satisfies readonly ErrorCode[];

const readAnswers = {
  200: {
    description:
      'the bytes of a file, the entries of a directory, or what `format` or `Accept` asks for: a block, a CAR',
    content: {
      '*/*': Bytes,
      'application/json': IpfsDirectoryView,
      'application/vnd.ipld.raw': Bytes,
      'application/vnd.ipld.car': Bytes,
    },
  },
  ...partAnswers,
};

/** Below a CID: a path of its directories. */
const PathParams = Type.Object({
  hash: Cid,
  '*': Type.String({ description: 'path below it, separated by slashes' }),
});

const readsIpfs = () => {
  const { rateClass, errors } = readsBytes();
  return { rateClass, errors: [...errors, 'NOT_ACCEPTABLE'] as readonly ErrorCode[] };
};

/** IPFS (specification, "IPFS"), and what deployed nodes take for it. */
export const IPFS_API = {
  getIpfsFile: {
    method: 'GET',
    also: ['HEAD'],
    path: '/api/v0/ipfs/:hash',
    summary: 'Get an IPFS file with its content type, or the entries of a directory',
    ...readsIpfs(),
    params: Type.Object({ hash: Cid }),
    query: IpfsReadQuery,
    answers: readAnswers,
  },
  getIpfsPath: {
    method: 'GET',
    also: ['HEAD'],
    path: '/api/v0/ipfs/:hash/*',
    summary: 'Get a file or directory at a path inside an IPFS directory',
    ...readsIpfs(),
    params: PathParams,
    query: IpfsReadQuery,
    answers: readAnswers,
  },
  getGatewayFile: {
    method: 'GET',
    also: ['HEAD'],
    path: '/ipfs/:hash',
    summary: 'Read a CID as from any IPFS gateway: the file, or with `format` what can be checked by the CID',
    ...readsIpfs(),
    params: Type.Object({ hash: Cid }),
    query: IpfsReadQuery,
    answers: readAnswers,
  },
  getGatewayPath: {
    method: 'GET',
    also: ['HEAD'],
    path: '/ipfs/:hash/*',
    summary:
      'Read what is at a path below a CID as from any IPFS gateway; a CAR begins with the blocks of the path',
    ...readsIpfs(),
    params: PathParams,
    query: IpfsReadQuery,
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
  addIpfsCar: {
    method: 'POST',
    path: '/api/v0/ipfs/add_car',
    summary:
      'Add a file or directory to IPFS as a CAR (multipart: metadata with a signed STORE message, file)',
    ...reads(...STORE_ERRORS, ...WRITE_ERRORS, 'INVALID_CAR'),
    ...asDeployed,
    body: { kind: 'form', fields: CarForm },
    answers: { 200: AddedIpfsFileView, 202: AddedIpfsFileView },
    deployed: {
      differs:
        'every block below the root must be in the CAR or already here; deployed nodes look for the others on the network. `metadata` may come before the file or after it; after it, the CAR has the limit of an unsigned file',
    },
  },
  pinToIpfs: {
    method: 'POST',
    path: '/api/v0/ipfs/pin',
    summary: 'Pin an IPFS item; pending until all of it has been fetched',
    ...takesSigned(
      { type: 'IPFS_PIN', content: IpfsPinContent },
      'FILE_NOT_FOUND',
      'CREDIT_INSUFFICIENT',
      'MESSAGE_FORGOTTEN',
    ),
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
