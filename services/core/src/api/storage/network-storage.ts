import { Readable } from 'node:stream';
import { answer, type Handlers, type Held } from '@skerry/kit';
import { AppError, normaliseAddress, parseMessageHash } from '@skerry/protocol';
import type { FileReferenceView, NETWORK_STORAGE_API } from '@skerry/protocol/api/core/network-storage';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Accepted, Verdict } from '../../intake/accepted.ts';
import { withTimeLimit } from '../../state/lists/time-limit.ts';
import {
  countPins,
  type FileReference,
  findFileByMessageRef,
  findFileByName,
  findFileOfMessage,
} from '../../store/files/references.ts';
import { isCidText } from '../../store/ipfs/cid.ts';
import type { Rooms, RouteSettings } from '../rooms.ts';
import {
  announcedBytes,
  FILE_BODY_TYPE,
  type FormFile,
  type FormReader,
  withFormOf,
  withPlace,
} from './storage-form.ts';
import { downloadPathOf, unsignedLimitOf } from './storage-read.ts';

const METADATA = 'metadata';

/** The message that came beside a file, verified. Undefined without one. Throws what verifying a message throws. */
export async function readMetadata(
  { intake }: Pick<Rooms, 'intake'>,
  fields: ReadonlyMap<string, string>,
): Promise<Accepted | undefined> {
  const text = fields.get(METADATA);
  if (text === undefined) return undefined;
  return intake.client.read(Buffer.from(text), 'STORE');
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
function unsignedBytes(
  settings: RouteSettings,
  { headers }: FastifyRequest,
): { limit: number; atMost: number } {
  const limit = unsignedLimitOf(settings);
  return { limit, atMost: Math.min(limit, Number(headers['content-length'] ?? limit)) };
}

/**
 * Receives a file with the message before it, or within the share of a client that sends none. The message is verified
 * before a byte of the file is kept.
 */
export const guardedReader = <T>(
  rooms: Pick<Rooms, 'intake' | 'settings' | 'uploads' | 'clientOf'>,
  request: FastifyRequest,
  receive: (source: Readable, limitBytes: number) => Promise<T>,
  discard: (value: T) => Promise<void>,
  checkSigned: (accepted: Accepted) => Promise<void> = async () => {},
): FormReader<Guarded<T>> => ({
  fields: [METADATA],
  async receive(source, fields) {
    const accepted = await readMetadata(rooms, fields);
    if (accepted) {
      await checkSigned(accepted);
      const value = await receive(source, rooms.settings.uploadLimitBytes);
      return { value, accepted, held: NOTHING_HELD };
    }
    const { limit, atMost } = unsignedBytes(rooms.settings, request);
    const held = await rooms.uploads.beginUnpinned(rooms.clientOf(request), atMost);
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
  accepted: Accepted,
  fileHash: string,
  named: T,
  submit: (accepted: Accepted) => Promise<Verdict>,
) {
  if (accepted.subject !== fileHash) {
    throw new AppError('HASH_MISMATCH', `File hash does not match (${fileHash} != ${accepted.subject})`);
  }
  const { status, reason } = await submit(accepted);
  if (status === 'processed') return { status: 'success' as const, ...named };
  if (status === 'pending') return answer(202, { status, ...named });
  throw new AppError(reason?.code ?? 'MESSAGE_FORGOTTEN', reason?.message ?? 'the message was forgotten');
}

const viewOf = ({ ref, owner, fileHash, sizeBytes }: FileReference): FileReferenceView => ({
  ref,
  owner,
  file_hash: fileHash,
  size: sizeBytes,
  download_url: downloadPathOf(fileHash),
});

function found(reference: FileReference | undefined, what: string) {
  if (!reference) throw new AppError('FILE_NOT_FOUND', `${what} names no file that is stored here`);
  return viewOf(reference);
}

type Received = Awaited<ReturnType<Rooms['files']['receive']>>;
type Adding = Pick<Rooms, 'files' | 'intake' | 'settings' | 'uploads' | 'uploadPlaces' | 'clientOf'>;

/** Keeps a file that was received: for its message, or within the share of its sender. */
async function keep(
  rooms: Adding,
  request: FastifyRequest,
  file: FormFile<Guarded<Received>> | undefined,
  fields: ReadonlyMap<string, string>,
) {
  if (!file) throw new AppError('INVALID_PARAMETERS', 'the form has no file; send it as the field "file"');
  const { files, uploads, clientOf } = rooms;
  const { value: blob } = file.blob;
  const { hash, sizeBytes } = blob;
  // Deployed clients send it after the file.
  const accepted = file.blob.accepted ?? (await readMetadata(rooms, fields));
  if (accepted)
    return submitStore(accepted, hash, { hash }, () => files.storeFor(blob, file.contentType, accepted));
  await files.storeUnpinned(blob, file.contentType);
  await uploads.note(clientOf(request), hash, sizeBytes);
  return { status: 'success' as const, hash };
}

/** A body that is no form is the file. */
const addBytes = (
  rooms: Adding,
  reader: FormReader<Guarded<Received>>,
  request: FastifyRequest,
  reply: FastifyReply,
) =>
  withPlace(request, reply, rooms, async () => {
    // Whoever sends too much is still told so: to stop reading does not end the connection.
    const bytes = Readable.from(request.raw.iterator({ destroyOnReturn: false }), { objectMode: false });
    const blob = await reader.receive(bytes, new Map());
    try {
      return await keep(rooms, request, { blob, contentType: FILE_BODY_TYPE }, new Map());
    } finally {
      await reader.discard(blob);
    }
  });

function addFile(rooms: Adding, request: FastifyRequest, reply: FastifyReply) {
  const reader = guardedReader(
    rooms,
    request,
    (source, limitBytes) => rooms.files.receive(source, limitBytes, announcedBytes(request)),
    (blob) => blob.discard(),
  );
  return request.headers['content-type']?.startsWith(FILE_BODY_TYPE)
    ? addBytes(rooms, reader, request, reply)
    : withFormOf(request, reply, rooms, reader, ({ file, fields }) => keep(rooms, request, file, fields));
}

async function countFileMessages(db: Rooms['db'], text: string): Promise<number> {
  if (isCidText(text)) return countPins(db, text);
  const { hash } = parseMessageHash(text);
  return countPins(db, (await findFileOfMessage(db, hash))?.fileHash ?? hash);
}

/** What deployed nodes take and answer about files beside the specification's paths. */
export function networkStorageHandlers(
  rooms: Adding & Pick<Rooms, 'db' | 'longLists'>,
): Handlers<typeof NETWORK_STORAGE_API> {
  const { db, longLists } = rooms;
  /** What anybody may have written any number of messages for. */
  const look = <T>(reply: FastifyReply, read: (on: Rooms['db']) => Promise<T>) =>
    withTimeLimit(longLists.askedIn(db, reply), read);
  return {
    addFile: ({ request, reply }) => addFile(rooms, request, reply),
    async getFileByMessage({ params }) {
      const { hash } = parseMessageHash(params.hash);
      return found(await findFileOfMessage(db, hash), `the message ${hash}`);
    },
    async getFileByRef({ params, reply }) {
      const { hash } = parseMessageHash(params.ref);
      return found(await look(reply, (on) => findFileByMessageRef(on, hash)), `the message ${hash}`);
    },
    async getFileByName({ params: { address, ref }, reply }) {
      const owner = normaliseAddress(address);
      return found(await look(reply, (on) => findFileByName(on, owner, ref)), `${ref} of ${address}`);
    },
    countFileMessages: ({ params, reply }) => look(reply, (on) => countFileMessages(on, params.hash)),
  };
}
