import type { Handlers } from '@skerry/kit';
import {
  AppError,
  isClockFault,
  itemHashOfUpload,
  normaliseAddress,
  parseEvmAddress,
  parseItemHash,
} from '@skerry/protocol';
import type { UPLOADS_API, UploadView } from '@skerry/protocol/api/core/storage';
import type { Accepted } from '../../intake/accepted.ts';
import { checkUpload } from '../../intake/upload-check.ts';
import { findMessage } from '../../state/messages/find.ts';
import type { Whole } from '../../store/files/parts/parts.ts';
import { findFileOfMessage } from '../../store/files/references.ts';
import type { Rooms } from '../rooms.ts';
import { asContentType, checkStored, fieldsOf, withPlace } from './storage-form.ts';

type Used = Pick<
  Rooms,
  'db' | 'intake' | 'files' | 'parts' | 'uploadPlaces' | 'clientOf' | 'settings' | 'now'
>;

const viewOf = ({ hash, sizeBytes }: Whole, received: number, itemHash: string | null): UploadView => ({
  file_hash: hash,
  size: sizeBytes,
  received,
  item_hash: itemHash,
});

interface Sent {
  readonly address: string;
  readonly signature: string;
  readonly channel: string;
  readonly tags: string;
  readonly content_type: string;
}

const formOf = ({ address, signature, channel, tags }: Sent) =>
  fieldsOf(new Map(Object.entries({ address, signature, channel, tags })));

/** All of a file is here: it is kept if it is what was signed. */
async function keepWhole({ files, parts }: Used, whole: Whole, sent: Sent): Promise<string> {
  const blob = await files.receive(parts.read(whole), whole.sizeBytes, whole.sizeBytes);
  try {
    if (blob.hash !== whole.hash)
      throw new AppError('HASH_MISMATCH', `what came has the hash ${blob.hash}, not ${whole.hash}`);
    const { messageHash, verdict } = await files.store(blob, asContentType(sent.content_type), formOf(sent));
    checkStored(verdict);
    return messageHash;
  } finally {
    await blob.discard();
  }
}

/** Whether the same bytes will be refused again; what the disk, the database or want of credit refused may be tried again. */
const isFinal = (error: unknown) =>
  error instanceof AppError &&
  error.kind !== 'unavailable' &&
  error.kind !== 'internal' &&
  error.code !== 'CREDIT_INSUFFICIENT' &&
  !isClockFault(error);

/** Keeps a file of which all is here; its parts go, unless it may be tried again. */
async function complete(rooms: Used, whole: Whole, sent: Sent, itemHash: string): Promise<string> {
  const { parts } = rooms;
  try {
    const kept = await keepWhole(rooms, whole, sent);
    await parts.remove(whole);
    return kept;
  } catch (error) {
    // Another process may have put it together meanwhile, and taken its parts away from under us.
    if (await isEnded(rooms, whole, itemHash).catch(() => false)) return itemHash;
    if (isFinal(error)) await parts.remove(whole);
    throw error;
  }
}

/**
 * Whether an upload came to its end: its message is in force, and the file is here. Its parts are gone by then, and whoever lost the
 * last answer must not send them again.
 */
async function isEnded({ db, files }: Used, { hash, sizeBytes }: Whole, itemHash: string): Promise<boolean> {
  const kept = await findFileOfMessage(db, itemHash);
  if (kept?.sizeBytes !== sizeBytes) return false;
  try {
    await files.get(parseItemHash(hash));
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'FILE_NOT_FOUND') return false;
    throw error;
  }
}

/** What its owner forgot, or has no credit for, is not taken: nothing of it needs to come. */
async function checkTaken({ db, now }: Pick<Used, 'db' | 'now'>, accepted: Accepted): Promise<void> {
  const row = await findMessage(db, accepted.message.itemHash);
  // What a peer told of before its file was anywhere waits for just this.
  if (row && row.reason?.code !== 'FILE_NOT_FOUND') checkStored(row);
  else await checkUpload(db, accepted, now());
}

/** Files in parts (docs/storage.md). */
export const uploadHandlers = (rooms: Used): Handlers<typeof UPLOADS_API> => ({
  async getUpload({ params, query: { address, size } }) {
    const sender = parseEvmAddress(address);
    const hash = parseItemHash(params.hash);
    const whole = { hash, address: normaliseAddress(sender), sizeBytes: size };
    const itemHash = itemHashOfUpload(hash, sender);
    return (await isEnded(rooms, whole, itemHash))
      ? viewOf(whole, size, itemHash)
      : viewOf(whole, await rooms.parts.received(whole), null);
  },
  sendPart: ({ params, query, request, reply }) =>
    withPlace(request, reply, rooms, async () => {
      const hash = parseItemHash(params.hash);
      // Whose it is stands fast before a byte is kept.
      const contentType = asContentType(query.content_type);
      const file = { hash, sizeBytes: query.size, contentType };
      const accepted = rooms.intake.client.readUpload(formOf(query), file);
      const { sender, itemHash } = accepted.message;
      const whole = { hash, address: normaliseAddress(sender), sizeBytes: query.size };
      const { uploadLimitBytes } = rooms.settings;
      if (query.size > uploadLimitBytes)
        throw new AppError('FILE_TOO_LARGE', `a file may have at most ${uploadLimitBytes} bytes here`);
      // From the first byte to the last: the whole is put together once.
      using _held = rooms.parts.hold(whole);
      if (await isEnded(rooms, whole, itemHash)) return viewOf(whole, query.size, itemHash);
      await checkTaken(rooms, accepted);
      const received = await rooms.parts.append(whole, query.offset, request.raw, rooms.clientOf(request));
      const isWhole = received === query.size;
      return viewOf(whole, received, isWhole ? await complete(rooms, whole, query, itemHash) : null);
    }),
});
