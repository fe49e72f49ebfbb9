import type { HttpServer } from '@skerry/kit';
import { AppError, parseItemHash } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { StoredFile } from '../files/files.ts';
import { findFileOfMessage } from '../files/references.ts';
import { isCidText, parseCid } from '../ipfs/cid.ts';
import { answersFromMemory, reads } from './declare.ts';
import type { Rooms, RouteSettings } from './rooms.ts';
import { decideRead, dispositionOf, prefersJson } from './storage-conditions.ts';
import { encodeAsJson, JSON_FILE_BYTES_MAX, jsonLength } from './storage-json.ts';

/** A file that comes without a signed message (facts of deployed nodes: 25 MiB). */
const UNSIGNED_FILE_BYTES = 25 * 1024 * 1024;
export const unsignedLimitOf = ({ uploadLimitBytes }: RouteSettings) =>
  Math.min(UNSIGNED_FILE_BYTES, uploadLimitBytes);

const PREFIX = '/api/v0';
const RAW_CONTENT_TYPE = 'application/octet-stream';

const bytesOf = (description: string) => ({
  description,
  content: { '*/*': { schema: { type: 'string', format: 'binary' } } },
});
export const BYTES_VIEWS = {
  200: bytesOf('the bytes'),
  206: bytesOf('the part of them that Range asks for'),
  304: { description: 'the caller has it already' },
};
/** What reading by CID may be answered with. */
export const IPFS_READ_ERRORS = [
  'CID_NOT_FOUND',
  'NOT_UNIXFS',
  'IPFS_UNAVAILABLE',
  'IPFS_TIMEOUT',
  'OVERLOADED',
] as const;

export const READS_BYTES = {
  ...reads(
    'INVALID_HASH',
    'FILE_NOT_FOUND',
    'FILE_TOO_LARGE',
    'PRECONDITION_FAILED',
    'RANGE_NOT_SATISFIABLE',
    'STORAGE_UNAVAILABLE',
    ...IPFS_READ_ERRORS,
  ),
  slowAfterMs: Infinity,
};

const HashParams = Type.Object({
  hash: Type.String({ description: 'SHA-256 or CID of the file, or item hash of its STORE message' }),
});
const MetadataView = Type.Object({
  file_hash: Type.String(),
  type: Type.Literal('file'),
  size: Type.Integer({ description: 'bytes' }),
  download_url: Type.String({ description: 'path below this host' }),
});
const LimitsView = Type.Object({
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
});

/** Bytes of strangers: never run as a page of this origin, cached for ever since their name is their hash. */
const safeHeaders = (etag: string, contentType: string) => ({
  etag,
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'content-disposition': dispositionOf(contentType),
});

/** Ends when the caller is gone, or has the answer. Not the socket is listened to: it outlives the request. */
export function closing(reply: Pick<FastifyReply, 'raw'>): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}

type Request = FastifyRequest<{ Params: { hash: string } }>;

export async function sendBytes(
  file: StoredFile,
  contentType: string,
  request: Pick<FastifyRequest, 'headers' | 'method'>,
  reply: FastifyReply,
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
  return reply.status(range ? 206 : 200).send(await file.open(range));
}

async function sendJson(file: StoredFile, request: Request, reply: FastifyReply): Promise<FastifyReply> {
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
  return request.method === 'HEAD' ? reply.send() : reply.send(encodeAsJson(file.hash, await file.open()));
}

/** Reading files (specification, "Storage"; deployed form: docs/decisions.md 7). */
export async function storageReadRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const open = async (hash: string, reply: FastifyReply): Promise<StoredFile> => {
    if (!isCidText(hash)) return rooms.files.get(parseItemHash(hash));
    const found = await rooms.ipfs.open(parseCid(hash), [], closing(reply));
    if (found.kind === 'file') return found;
    throw new AppError('NOT_UNIXFS', `${hash} is a directory; GET ${PREFIX}/ipfs/${hash} lists it`);
  };
  /** By SHA-256, by CID, or by the hash of the STORE message that keeps it. */
  const find = async (request: Request, reply: FastifyReply): Promise<StoredFile> => {
    const { hash } = request.params;
    try {
      return await open(hash, reply);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'FILE_NOT_FOUND') throw error;
      const named = await findFileOfMessage(rooms.db, parseItemHash(hash));
      if (!named)
        throw new AppError(
          'FILE_NOT_FOUND',
          `there is no file ${hash} here, and no STORE message of that hash`,
        );
      return open(named.fileHash, reply);
    }
  };
  const method: ('GET' | 'HEAD')[] = ['GET', 'HEAD'];

  app.route({
    method,
    url: '/storage/:hash',
    exposeHeadRoute: false,
    schema: {
      summary:
        'A file, with its content type; as JSON with base64 where Accept asks for application/json first',
      params: HashParams,
      response: BYTES_VIEWS,
    },
    config: READS_BYTES,
    handler: async (request, reply) => {
      reply.header('vary', 'accept');
      const file = await find(request, reply);
      return prefersJson(request.headers.accept)
        ? sendJson(file, request, reply)
        : sendBytes(file, file.contentType, request, reply);
    },
  });

  app.route({
    method,
    url: '/storage/raw/:hash',
    exposeHeadRoute: false,
    schema: { summary: "A file's bytes", params: HashParams, response: BYTES_VIEWS },
    config: READS_BYTES,
    handler: async (request, reply) =>
      sendBytes(await find(request, reply), RAW_CONTENT_TYPE, request, reply),
  });

  app.get(
    '/storage/metadata/:hash',
    {
      schema: { summary: 'Size and address of a file', params: HashParams, response: { 200: MetadataView } },
      config: reads('INVALID_HASH', 'FILE_NOT_FOUND', 'STORAGE_UNAVAILABLE', ...IPFS_READ_ERRORS),
    },
    async (request, reply) => {
      const { hash, sizeBytes } = await find(request, reply);
      return {
        file_hash: hash,
        type: 'file' as const,
        size: sizeBytes,
        download_url: `${PREFIX}/storage/raw/${hash}`,
      };
    },
  );

  const limits = {
    storage: {
      max_file_size: rooms.settings.uploadLimitBytes,
      max_unauthenticated_upload_file_size: unsignedLimitOf(rooms.settings),
    },
    // No CAR files are taken.
    ipfs: {
      max_upload_file_size: rooms.settings.uploadLimitBytes,
      max_upload_car_size: 0,
      max_unauthenticated_upload_file_size: unsignedLimitOf(rooms.settings),
    },
  };
  app.get(
    '/storage/limits.json',
    {
      schema: { summary: 'The largest files that are taken', response: { 200: LimitsView } },
      config: answersFromMemory(),
    },
    async () => limits,
  );
}
