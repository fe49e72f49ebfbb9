import { Readable } from 'node:stream';
import type { Client, Handlers } from '@skerry/kit';
import { AppError, LIMITS } from '@skerry/protocol';
import type { IPFS_API, IpfsDirectoryView, IpfsReadQuery } from '@skerry/protocol/api/core/ipfs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Accepted } from '../../intake/accepted.ts';
import { foreseeComing, withoutFile } from '../../intake/upload-check.ts';
import { waitForEvent } from '../../notify/events/wait.ts';
import { findMessage } from '../../state/messages/find.ts';
import { parseCid } from '../../store/ipfs/cid.ts';
import type { IpfsDirectory, KeptNode } from '../../store/ipfs/ipfs-files.ts';
import { IPFS_LIMITS } from '../../store/ipfs/limits.ts';
import { answerOf, submitBody } from '../messages/submit.ts';
import type { Rooms } from '../rooms.ts';
import { closing } from '../shares/closing.ts';
import { readingLine } from '../shares/flows.ts';
import { Places } from '../shares/places.ts';
import { type Guarded, guardedReader, readMetadata, submitStore } from '../storage/network-storage.ts';
import { checkJson } from '../storage/storage.ts';
import {
  announcedBytes,
  checkStored,
  FILE_BODY_TYPE,
  FORM_OVERHEAD_BYTES,
  type Form,
  withFormOf,
} from '../storage/storage-form.ts';
import { type Reading, sendBytes } from '../storage/storage-read.ts';
import { readAsked } from './asked.ts';
import {
  contentPathOf,
  type GatewayPath,
  IMMUTABLE,
  PROBE,
  probeId,
  sendBlock,
  sendCar,
  sendProbe,
} from './gateway.ts';

type ReadRooms = Pick<Rooms, 'ipfs' | 'fileReads' | 'clientOf'> & { readonly cars: Places };
type Adding = Pick<
  Rooms,
  'db' | 'ipfs' | 'intake' | 'settings' | 'uploads' | 'uploadPlaces' | 'clientOf' | 'now'
>;
type Pinning = Pick<Rooms, 'db' | 'events' | 'intake' | 'settings' | 'signal' | 'clientOf'>;

async function sendDirectory(found: IpfsDirectory, { method }: FastifyRequest, reply: FastifyReply) {
  const listed = await found.list();
  const entries = listed.map(({ name, cid, sizeBytes }) => ({ name, hash: cid, size: sizeBytes }));
  reply.headers({ etag: `"${found.hash}.json"`, 'cache-control': IMMUTABLE, 'accept-ranges': 'none' });
  if (method === 'HEAD') return reply.type('application/json; charset=utf-8').send();
  const complete = entries.length < IPFS_LIMITS.entries;
  const view: IpfsDirectoryView = { hash: found.hash, type: 'directory', entries, complete };
  return reply.send(view);
}

interface Wanted {
  readonly hash: string;
  /** Below the CID; empty for the CID itself. */
  readonly path: string;
  readonly query: IpfsReadQuery;
}

/** The file itself, or what a directory holds, from here or from others. */
async function sendFile(
  { ipfs }: Pick<Rooms, 'ipfs'>,
  path: GatewayPath,
  request: FastifyRequest,
  { reply, place }: Pick<Reading, 'reply' | 'place'>,
): Promise<FastifyReply> {
  if (asksForKeptAlone(request)) await ipfs.block(path.id, closing(reply));
  const found = await ipfs.open(path.id, path.segments, closing(reply));
  reply.header('x-ipfs-path', contentPathOf(path));
  return found.kind === 'directory'
    ? sendDirectory(found, request, reply)
    : sendBytes(found, found.contentType, { request, reply, place });
}

const asksForKeptAlone = ({ headers }: FastifyRequest) =>
  /\bonly-if-cached\b/i.test(headers['cache-control'] ?? '');

function pathOf({ hash, path }: Wanted): GatewayPath {
  const segments = path.split('/').filter((segment) => segment !== '');
  if (segments.length > IPFS_LIMITS.pathSegments)
    throw new AppError('INVALID_PARAMETERS', `a path may have ${IPFS_LIMITS.pathSegments} parts`);
  return { id: hash === PROBE ? probeId : parseCid(hash), segments };
}

async function answerRead(rooms: ReadRooms, wanted: Wanted, request: FastifyRequest, reply: FastifyReply) {
  reply.header('vary', 'accept');
  const asked = readAsked(wanted.query, request.headers.accept);
  const path = pathOf(wanted);
  if (path.id === probeId) return sendProbe(path, asked, request, reply);
  try {
    if (asked.form === 'car') {
      const place = await rooms.cars.take(rooms.clientOf(request), closing(reply));
      place.watch(readingLine(reply, { isWhole: true }));
      return await sendCar(rooms.ipfs, place, path, asked, request, reply);
    }
    using place = await rooms.fileReads.take(reply);
    if (asked.form === 'raw') return await sendBlock(rooms.ipfs, path, request, reply);
    return await sendFile(rooms, path, request, { reply, place });
  } catch (error) {
    const isAbsent = error instanceof AppError && error.code === 'CID_NOT_FOUND';
    if (isAbsent && asksForKeptAlone(request))
      throw new AppError('PRECONDITION_FAILED', `${wanted.hash} is not kept here`, { cause: error });
    throw error;
  }
}

/** Keeps what was received for its message; without one it stays for the grace period. */
async function keepAdded(
  rooms: Pick<Adding, 'intake'>,
  { fields, file }: Form<Guarded<KeptNode>>,
  viewOf: (node: KeptNode) => { readonly hash: string },
) {
  if (!file) throw new AppError('INVALID_PARAMETERS', 'the form has no file; send it as the field "file"');
  const { id } = file.blob.value;
  const named = viewOf(file.blob.value);
  const accepted = file.blob.accepted ?? (await readMetadata(rooms, fields));
  if (accepted) return submitStore(accepted, id.text, named, () => rooms.intake.client.keep(accepted));
  return { status: 'success' as const, ...named };
}

/**
 * Blocks are kept as they come: of who sent too much that no message kept, and of a file whose message would be refused, none are.
 * @param sizeBytes that the file has at least
 */
async function checkComing(
  rooms: Adding,
  request: FastifyRequest,
  accepted: Accepted,
  sizeBytes: number,
): Promise<void> {
  await rooms.uploads.checkShare(rooms.clientOf(request));
  const { subject } = accepted;
  // Its content is elsewhere, and names no file that could come with it.
  if (subject === null)
    throw new AppError('HASH_MISMATCH', 'the message names no file: its content is not in it');
  const { db, intake, now } = rooms;
  const file = { hash: subject, sizeBytes, contentType: FILE_BODY_TYPE };
  const { verdict, isKnown } = await foreseeComing(db, accepted, file, now);
  if (verdict.status !== 'rejected' || !isKnown) return checkStored(verdict);
  // A message that waited for its file is told so, unless the world has changed since it was looked at.
  const told = await intake.client.keep(withoutFile(accepted));
  checkStored(told.status === 'pending' ? verdict : told);
}

/** How a file is taken in, in whatever form it comes. @param leastBytes that the file has */
const ipfsReader = (
  rooms: Adding,
  request: FastifyRequest,
  leastBytes: number,
  take: (source: Readable, limitBytes: number) => Promise<KeptNode>,
) =>
  guardedReader(
    rooms,
    request,
    async (source, limitBytes) => {
      const node = await take(source, limitBytes);
      // Kept already, for the grace period, whatever the rest of its form says: the client's until a message keeps it.
      await rooms.uploads.note(rooms.clientOf(request), node.id.text, node.sizeBytes);
      return node;
    },
    async () => {},
    (accepted) => checkComing(rooms, request, accepted, leastBytes),
  );

function addFile(rooms: Adding, request: FastifyRequest, reply: FastifyReply) {
  const signal = closing(reply);
  const leastBytes = Math.max(0, Number(request.headers['content-length'] ?? 0) - FORM_OVERHEAD_BYTES);
  const reader = ipfsReader(rooms, request, leastBytes, (source, limitBytes) =>
    rooms.ipfs.add(source, { cidVersion: 0, limitBytes, sizeBytes: announcedBytes(request), signal }),
  );
  return withFormOf(request, reply, rooms, reader, (form) =>
    keepAdded(rooms, form, ({ id: { text }, sizeBytes }) => ({
      hash: text,
      name: text,
      size: sizeBytes,
    })),
  );
}

/** A CAR comes with its message, before it or after it, as deployed nodes have it. */
function addCar(rooms: Adding, request: FastifyRequest, reply: FastifyReply) {
  const signal = closing(reply);
  // Whatever the CAR has, its root may need little of it.
  const reader = ipfsReader(rooms, request, 0, (source, limitBytes) =>
    rooms.ipfs.addCar(source, { limitBytes, sizeBytes: announcedBytes(request), signal }),
  );
  return withFormOf(request, reply, rooms, reader, (form) => {
    if (!form.fields.has('metadata'))
      throw new AppError('SIGNATURE_REQUIRED', 'the form lacks the signed message, in the field "metadata"');
    return keepAdded(rooms, form, ({ id, sizeBytes }) => ({ hash: id.text, size: sizeBytes }));
  });
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
  { db, events, settings, signal }: Pinning,
  itemHash: string,
  cursor: string,
): Promise<void> {
  await waitForEvent(
    events,
    events.askedIn(db),
    cursor,
    ({ kind, data }) => kind === 'message' && data.item_hash === itemHash,
    settings.ipfsPinWaitMs,
    signal,
  );
}

async function pin(rooms: Pinning, body: Uint8Array, client: Client) {
  const cursor = await rooms.events.askedIn(rooms.db).lastCursor();
  const submitted = await submitBody(rooms, body, { type: 'IPFS_PIN', client });
  const { message, verdict } = submitted;
  if (verdict.status !== 'pending' || rooms.settings.ipfsPinWaitMs === 0) return answerOf(submitted, {});
  await waitForPin(rooms, message.itemHash, cursor);
  const row = await findMessage(rooms.db, message.itemHash);
  const now = row ? { status: row.status, reason: row.reason } : verdict;
  return answerOf({ message, verdict: now }, {});
}

/** IPFS (specification, "IPFS"), and what deployed nodes take for it. */
export function ipfsHandlers(
  used: Pick<Rooms, 'fileReads' | 'metrics'> & Adding & Pinning,
): Handlers<typeof IPFS_API> {
  const rooms = { ...used, cars: new Places(IPFS_LIMITS.cars, () => used.metrics.http.letGo('reader')) };
  return {
    getIpfsFile: ({ params: { hash }, query, request, reply }) =>
      answerRead(rooms, { hash, path: '', query }, request, reply),
    getIpfsPath: ({ params: { hash, '*': path }, query, request, reply }) =>
      answerRead(rooms, { hash, path, query }, request, reply),
    getGatewayFile: ({ params: { hash }, query, request, reply }) =>
      answerRead(rooms, { hash, path: '', query }, request, reply),
    getGatewayPath: ({ params: { hash, '*': path }, query, request, reply }) =>
      answerRead(rooms, { hash, path, query }, request, reply),
    addIpfsFile: ({ request, reply }) => addFile(rooms, request, reply),
    addIpfsCar: ({ request, reply }) => addCar(rooms, request, reply),
    pinToIpfs: ({ body, request }) => pin(rooms, body, rooms.clientOf(request)),
    addIpfsJson: ({ body, request, reply }) => addJson(rooms, body, request, reply),
  };
}
