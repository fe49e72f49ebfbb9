import { Readable } from 'node:stream';
import type { Handlers } from '@skerry/kit';
import { AppError, LIMITS } from '@skerry/protocol';
import type { STORAGE_API } from '@skerry/protocol/api/core/storage';
import type { FastifyRequest } from 'fastify';
import type { Rooms } from '../rooms.ts';
import { checkStored, type Form, fieldsOf, withForm } from './storage-form.ts';
import { storageReadHandlers } from './storage-read.ts';

/** The bytes are kept as they came; they must be one JSON value in UTF-8 (RFC 8259). */
export function checkJson(body: Uint8Array): void {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw new AppError('INVALID_JSON', 'the body must be one JSON value, in UTF-8', { cause: error });
  }
}

async function storeFile({ files }: Pick<Rooms, 'files'>, { file, fields }: Form) {
  if (!file) throw new AppError('INVALID_PARAMETERS', 'the form has no file; send it as the field "file"');
  const stored = await files.store(file.blob, file.contentType, fieldsOf(fields));
  const { messageHash, verdict } = stored;
  checkStored(verdict);
  return { item_hash: messageHash, status: 'success' as const, file_hash: file.blob.hash };
}

/** Keeps a JSON body as a file within the share of its sender. */
async function addJson(
  { files, uploads, clientOf }: Pick<Rooms, 'files' | 'uploads' | 'clientOf'>,
  body: Uint8Array,
  request: FastifyRequest,
) {
  checkJson(body);
  const standing = clientOf(request);
  const held = await uploads.beginUnpinned(standing, body.length);
  try {
    const blob = await files.receive(Readable.from([body]), LIMITS.unpinnedJsonBytes);
    try {
      await files.storeUnpinned(blob, 'application/json');
    } finally {
      await blob.discard();
    }
    await uploads.note(standing, blob.hash, blob.sizeBytes);
    return { status: 'success' as const, hash: blob.hash };
  } finally {
    held.release();
  }
}

/** Storage (specification, "Storage"): upload and download. */
export const storageHandlers = (
  rooms: Pick<
    Rooms,
    'db' | 'files' | 'ipfs' | 'fileReads' | 'uploads' | 'uploadPlaces' | 'clientOf' | 'settings'
  >,
): Handlers<typeof STORAGE_API> => ({
  storeFile: ({ request, reply }) => withForm(request, reply, rooms, (form) => storeFile(rooms, form)),
  addJson: ({ body, request }) => addJson(rooms, body, request),
  ...storageReadHandlers(rooms),
});
