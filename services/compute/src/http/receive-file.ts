import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError } from '@skerry/protocol';
import { limited } from '../files/limited.ts';
import { asStorageFull } from '../host/disk-full.ts';
import { withinRoom } from '../host/room.ts';

/** Between two pieces of a body: a sender that stopped does not hold its file for ever. */
const IDLE_LIMIT_MS = 60_000;

/** Writes a request's body to a file as it comes, and gives its SHA-256. Throws FILE_TOO_LARGE, REQUEST_TIMEOUT, STORAGE_FULL. */
export async function receiveFile(body: Readable, path: string, limitBytes: number): Promise<string> {
  const file = await open(path, 'wx', 0o600);
  const late = () => body.destroy(new AppError('REQUEST_TIMEOUT', 'the file upload stalled'));
  let timer = setTimeout(late, IDLE_LIMIT_MS);
  const digest = createHash('sha256');
  try {
    const taken = limited(body as AsyncIterable<Uint8Array>, limitBytes, 'a file for this instance');
    for await (const chunk of withinRoom(taken, dirname(path))) {
      clearTimeout(timer);
      digest.update(chunk);
      await file.writeFile(chunk);
      timer = setTimeout(late, IDLE_LIMIT_MS);
    }
    return digest.digest('hex');
  } catch (error) {
    throw asStorageFull(error);
  } finally {
    clearTimeout(timer);
    await file.close();
  }
}
