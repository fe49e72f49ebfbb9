import { Readable } from 'node:stream';
import type { Handlers } from '@skerry/kit';
import { AppError, LIMITS } from '@skerry/protocol';
import type { IPFS_API, IpfsDirectoryView } from '@skerry/protocol/api/core/ipfs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { waitForEvent } from '../notify/events/wait.ts';
import { findMessage } from '../state/messages/find.ts';
import { type BlockId, parseCid } from '../store/ipfs/cid.ts';
import type { IpfsDirectory, KeptNode } from '../store/ipfs/ipfs-files.ts';
import { IPFS_LIMITS } from '../store/ipfs/limits.ts';
import { answerOf, submitBody } from './messages/submission.ts';
import type { Rooms } from './rooms.ts';
import { type Guarded, guardedReader, readMetadata, submitStore } from './storage/network-storage.ts';
import { checkJson } from './storage/storage.ts';
import { type Form, withFormOf } from './storage/storage-form.ts';
import { closing, sendBytes } from './storage/storage-read.ts';

type Reading = Pick<Rooms, 'ipfs'>;
type Adding = Pick<Rooms, 'ipfs' | 'intake' | 'settings' | 'uploads' | 'clientOf'>;
type Pinning = Pick<Rooms, 'db' | 'events' | 'intake' | 'settings' | 'signal'>;

const IMMUTABLE = 'public, max-age=31536000, immutable';

async function sendDirectory(found: IpfsDirectory, { method }: FastifyRequest, reply: FastifyReply) {
  const listed = await found.list();
  const entries = listed.map(({ name, cid, sizeBytes }) => ({ name, hash: cid, size: sizeBytes }));
  reply.headers({ etag: `"${found.hash}.json"`, 'cache-control': IMMUTABLE, 'accept-ranges': 'none' });
  if (method === 'HEAD') return reply.type('application/json; charset=utf-8').send();
  const complete = entries.length < IPFS_LIMITS.entries;
  const view: IpfsDirectoryView = { hash: found.hash, type: 'directory', entries, complete };
  return reply.send(view);
}

async function sendBlock({ ipfs }: Reading, id: BlockId, reply: FastifyReply) {
  const bytes = await ipfs.block(id, closing(reply));
  return reply
    .headers({
      'content-type': 'application/vnd.ipld.raw',
      'cache-control': IMMUTABLE,
      'x-content-type-options': 'nosniff',
      'content-disposition': `attachment; filename="${id.text}.bin"`,
    })
    .send(bytes);
}

interface Wanted {
  readonly hash: string;
  /** Below the CID; empty for the CID itself. */
  readonly path: string;
  readonly format: 'raw' | undefined;
}

async function answerRead(
  rooms: Reading,
  { hash, path, format }: Wanted,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const id = parseCid(hash);
  const segments = path.split('/').filter((segment) => segment !== '');
  if (segments.length > IPFS_LIMITS.pathSegments)
    throw new AppError('INVALID_PARAMETERS', `a path may have ${IPFS_LIMITS.pathSegments} parts`);
  if (format === 'raw' && segments.length === 0) return sendBlock(rooms, id, reply);
  const found = await rooms.ipfs.open(id, segments, closing(reply));
  reply.header('x-ipfs-path', `/ipfs/${[id.text, ...segments.map(encodeURIComponent)].join('/')}`);
  return found.kind === 'directory'
    ? sendDirectory(found, request, reply)
    : sendBytes(found, found.contentType, request, reply);
}

/** Keeps what was received for its message; without one it stays for the grace period. */
async function keepAdded(rooms: Adding, { fields, file }: Form<Guarded<KeptNode>>, request: FastifyRequest) {
  if (!file) throw new AppError('INVALID_PARAMETERS', 'the form lacks the file, in the field "file"');
  const { id, sizeBytes } = file.blob.value;
  const named = { hash: id.text, name: id.text, size: sizeBytes };
  // Kept already, for the grace period: the client's until a message keeps it.
  await rooms.uploads.note(rooms.clientOf(request), id.text, sizeBytes);
  const accepted = file.blob.accepted ?? (await readMetadata(rooms, fields));
  if (accepted) return submitStore(accepted, id.text, named, () => rooms.intake.client.keep(accepted));
  return { status: 'success' as const, ...named };
}

function addFile(rooms: Adding, request: FastifyRequest, reply: FastifyReply) {
  const reader = guardedReader(
    rooms,
    request,
    (source, limitBytes) => rooms.ipfs.add(source, { cidVersion: 0, limitBytes, signal: closing(reply) }),
    async () => {},
    // What is kept before its message is judged: of who sent too much that no message kept, nothing more.
    () => rooms.uploads.checkShare(rooms.clientOf(request)),
  );
  return withFormOf(request, reply, rooms, reader, (form) => keepAdded(rooms, form, request));
}

async function addJson(
  { ipfs, uploads, clientOf }: Adding,
  body: Uint8Array,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  checkJson(body);
  const standing = clientOf(request);
  const held = await uploads.beginUnpinned(standing, body.length);
  try {
    const { id, sizeBytes } = await ipfs.add(Readable.from([body]), {
      cidVersion: 0,
      limitBytes: LIMITS.unpinnedJsonBytes,
      signal: closing(reply),
    });
    await uploads.note(standing, id.text, sizeBytes);
    return { status: 'success' as const, hash: id.text };
  } finally {
    held.release();
  }
}

/** Resolves when the message has its verdict, or after a while. */
async function waitForPin(
  { events, settings, signal }: Pinning,
  itemHash: string,
  cursor: string,
): Promise<void> {
  await waitForEvent(
    events,
    cursor,
    ({ kind, data }) => kind === 'message' && data.item_hash === itemHash,
    settings.ipfsPinWaitMs,
    signal,
  );
}

async function pin(rooms: Pinning, body: Uint8Array) {
  const cursor = await rooms.events.lastCursor();
  const submitted = await submitBody(rooms, body, { type: 'IPFS_PIN' });
  const { message, verdict } = submitted;
  if (verdict.status !== 'pending' || rooms.settings.ipfsPinWaitMs === 0) return answerOf(submitted, {});
  await waitForPin(rooms, message.itemHash, cursor);
  const row = await findMessage(rooms.db, message.itemHash);
  const now = row ? { status: row.status, reason: row.reason } : verdict;
  return answerOf({ message, verdict: now }, {});
}

/** IPFS (specification, "IPFS"), and what deployed nodes take for it. */
export const ipfsHandlers = (rooms: Reading & Adding & Pinning): Handlers<typeof IPFS_API> => ({
  getIpfsFile: ({ params: { hash }, query: { format }, request, reply }) =>
    answerRead(rooms, { hash, path: '', format }, request, reply),
  getIpfsPath: ({ params: { hash, '*': path }, query: { format }, request, reply }) =>
    answerRead(rooms, { hash, path, format }, request, reply),
  addIpfsFile: ({ request, reply }) => addFile(rooms, request, reply),
  pinToIpfs: ({ body }) => pin(rooms, body),
  addIpfsJson: ({ body, request, reply }) => addJson(rooms, body, request, reply),
});
