import type { Readable } from 'node:stream';
import type { Handlers, ServeOptions } from '@skerry/kit';
import { AppError, parseItemHash } from '@skerry/protocol';
import { IPFS_API } from '@skerry/protocol/api/core/ipfs';
import { STORAGE_API } from '@skerry/protocol/api/core/storage';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ByteRange } from '../../store/files/blob-store.ts';
import type { StoredFile } from '../../store/files/files.ts';
import { findFileOfMessage } from '../../store/files/references.ts';
import { isCidText, parseCid } from '../../store/ipfs/cid.ts';
import { prefersJson } from '../accept.ts';
import type { Rooms, RouteSettings } from '../rooms.ts';
import { closing } from '../shares/closing.ts';
import type { ReadPlace } from '../shares/file-reads.ts';
import { decideRead, dispositionOf } from './storage-conditions.ts';
import { encodeAsJson, JSON_FILE_BYTES_MAX, jsonLength } from './storage-json.ts';

/** A file that comes without a signed message (facts of deployed nodes: 25 MiB). */
const UNSIGNED_FILE_BYTES = 25 * 1024 * 1024;
export const unsignedLimitOf = ({ uploadLimitBytes }: RouteSettings) =>
  Math.min(UNSIGNED_FILE_BYTES, uploadLimitBytes);

const RAW_CONTENT_TYPE = 'application/octet-stream';

const FOR_EVER = 'public, max-age=31536000, immutable';

/** A file may take long to go out. */
export const READ_OPTIONS: ServeOptions = { config: { slowAfterMs: Infinity } };

/** Where a file's bytes are, below this host. */
export const downloadPathOf = (hash: string) => STORAGE_API.getRawFile.path.replace(':hash', hash);

/** Bytes of strangers: never run as a page of this origin, cached for ever since their name is their hash. */
const safeHeaders = (etag: string, contentType: string) => ({
  etag,
  'cache-control': FOR_EVER,
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'content-disposition': dispositionOf(contentType),
});

type Asking = Pick<FastifyRequest, 'headers' | 'method'>;

/** A request for a file, and the place that it has until it is answered. */
export interface Reading {
  readonly request: Asking;
  readonly reply: FastifyReply;
  readonly place: ReadPlace;
}

/** Below it a second connection costs the caller more than it spares the node. */
export const LINKED_BYTES_MIN = 4 * 1024 * 1024;
/** They name our entity tag, which whoever holds the bytes does not know: he would answer them wrongly. */
const CONDITIONS = ['if-match', 'if-none-match', 'if-range', 'if-modified-since', 'if-unmodified-since'];

/** Where the caller is sent for the bytes, if he is: a Range goes with him. */
function linkOf(file: StoredFile, { method, headers }: Asking): string | undefined {
  if (method !== 'GET' || file.sizeBytes < LINKED_BYTES_MIN) return undefined;
  if (CONDITIONS.some((name) => headers[name] !== undefined)) return undefined;
  return file.link?.({
    contentType: RAW_CONTENT_TYPE,
    contentDisposition: 'attachment',
    cacheControl: FOR_EVER,
  });
}

async function sendRaw(file: StoredFile, reading: Reading): Promise<FastifyReply> {
  const link = linkOf(file, reading.request);
  if (link === undefined) return sendBytes(file, RAW_CONTENT_TYPE, reading);
  // The link is good for minutes: nobody may keep the answer that has it.
  return reading.reply.status(307).headers({ location: link, 'cache-control': 'no-store' }).send();
}

export async function sendBytes(
  file: StoredFile,
  contentType: string,
  { request, reply, place }: Reading,
): Promise<FastifyReply> {
  const etag = `"${file.hash}"`;
  const { headers, method } = request;
  const decision = decideRead(
    {
      method,
      range: headers.range,
      ifRange: headers['if-range'] as string | undefined,
      ifMatch: headers['if-match'],
      ifNoneMatch: headers['if-none-match'],
    },
    etag,
    file.sizeBytes,
  );
  if (decision.kind === 'other version')
    throw new AppError('PRECONDITION_FAILED', `the file's entity tag is ${etag}`);
  if (decision.kind === 'unsatisfiable') {
    reply.header('content-range', `bytes */${file.sizeBytes}`);
    throw new AppError('RANGE_NOT_SATISFIABLE', `the file has ${file.sizeBytes} bytes`);
  }
  reply.headers({ ...safeHeaders(etag, contentType), 'accept-ranges': 'bytes' });
  if (decision.kind === 'not modified') return reply.status(304).send();
  const range = decision.kind === 'part' ? decision.range : undefined;
  reply.headers({
    'content-type': contentType,
    'content-length': range ? range.last - range.first + 1 : file.sizeBytes,
    ...(range ? { 'content-range': `bytes ${range.first}-${range.last}/${file.sizeBytes}` } : {}),
  });
  if (method === 'HEAD') return reply.send();
  return reply.status(range ? 206 : 200).send(await openToSend(file, range, place));
}

function openToSend(file: StoredFile, range: ByteRange | undefined, place: ReadPlace): Promise<Readable> {
  if (!file.openToSend || file.sizeBytes === 0) return openIn(place, file, range);
  return file.openToSend(range ?? { first: 0, last: file.sizeBytes - 1 });
}

/** What is near keeps nobody else waiting, however slowly it is taken. */
async function openIn(place: ReadPlace, file: StoredFile, range?: ByteRange): Promise<Readable> {
  const bytes = await file.open(range);
  return file.isFar ? place.keepFor(bytes) : bytes;
}

async function sendJson(file: StoredFile, { request, reply, place }: Reading): Promise<FastifyReply> {
  if (file.sizeBytes > JSON_FILE_BYTES_MAX) {
    throw new AppError(
      'FILE_TOO_LARGE',
      `as JSON a file may have ${JSON_FILE_BYTES_MAX} bytes; GET /storage/raw/${file.hash} gives it as it is`,
    );
  }
  // Another representation of the same file has another tag (RFC 9110, section 8.8.3).
  const etag = `"${file.hash}.json"`;
  const ifNoneMatch = request.headers['if-none-match'];
  const decision = decideRead({ method: request.method, ifNoneMatch }, etag, file.sizeBytes);
  reply.headers(safeHeaders(etag, 'application/json'));
  if (decision.kind === 'not modified') return reply.status(304).send();
  reply.headers({
    'content-type': 'application/json; charset=utf-8',
    'content-length': jsonLength(file.hash, file.sizeBytes),
  });
  if (request.method === 'HEAD') return reply.send();
  return reply.send(encodeAsJson(file.hash, await openIn(place, file)));
}

type Used = Pick<Rooms, 'db' | 'files' | 'ipfs' | 'fileReads'>;

async function open({ files, ipfs }: Used, hash: string, reply: FastifyReply): Promise<StoredFile> {
  if (!isCidText(hash)) return files.get(parseItemHash(hash));
  const found = await ipfs.open(parseCid(hash), [], closing(reply));
  if (found.kind === 'file') return found;
  const listing = IPFS_API.getIpfsFile.path.replace(':hash', hash);
  throw new AppError('NOT_UNIXFS', `${hash} is a directory; GET ${listing} lists it`);
}

/** By SHA-256, by CID, or by the hash of the STORE message that keeps it. */
async function find(rooms: Used, hash: string, reply: FastifyReply): Promise<StoredFile> {
  try {
    return await open(rooms, hash, reply);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'FILE_NOT_FOUND') throw error;
    const named = await findFileOfMessage(rooms.db, parseItemHash(hash));
    if (!named)
      throw new AppError(
        'FILE_NOT_FOUND',
        `there is no file ${hash} here, and no STORE message of that hash`,
      );
    return open(rooms, named.fileHash, reply);
  }
}

function limitsOf(settings: RouteSettings) {
  const { uploadLimitBytes } = settings;
  const unsigned = unsignedLimitOf(settings);
  return {
    storage: { max_file_size: uploadLimitBytes, max_unauthenticated_upload_file_size: unsigned },
    ipfs: {
      max_upload_file_size: uploadLimitBytes,
      max_upload_car_size: uploadLimitBytes,
      max_unauthenticated_upload_file_size: unsigned,
    },
  };
}

type Reads = 'getFile' | 'getRawFile' | 'getFileMetadata' | 'getFileLimits';

/** Reading files (specification, "Storage"; deployed form: docs/decisions.md 7). */
export function storageReadHandlers(
  rooms: Used & Pick<Rooms, 'settings'>,
): Pick<Handlers<typeof STORAGE_API>, Reads> {
  const limits = limitsOf(rooms.settings);
  return {
    async getFile({ params, request, reply }) {
      reply.header('vary', 'accept');
      using place = await rooms.fileReads.take(reply);
      const file = await find(rooms, params.hash, reply);
      const reading = { request, reply, place };
      return await (prefersJson(request.headers.accept)
        ? sendJson(file, reading)
        : sendBytes(file, file.contentType, reading));
    },
    async getRawFile({ params, request, reply }) {
      using place = await rooms.fileReads.take(reply);
      return await sendRaw(await find(rooms, params.hash, reply), { request, reply, place });
    },
    async getFileMetadata({ params, reply }) {
      using _place = await rooms.fileReads.take(reply);
      const { hash, sizeBytes } = await find(rooms, params.hash, reply);
      return { file_hash: hash, type: 'file', size: sizeBytes, download_url: downloadPathOf(hash) };
    },
    getFileLimits: () => limits,
  };
}
