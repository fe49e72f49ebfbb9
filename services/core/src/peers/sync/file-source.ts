import { Readable } from 'node:stream';
import { type ReadableStream, TransformStream } from 'node:stream/web';
import { partsMaxOf } from '@skerry/kit';
import {
  AppError,
  decodeHeldFiles,
  encodeAskedFiles,
  HELD_FILES_BODY_BYTES,
  isItemHash64,
} from '@skerry/protocol';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import type { FileSource } from '../../store/files/fetching/source.ts';
import { readLimited } from './link.ts';

const ANSWER_TIMEOUT_MS = 15_000;
/** Of who does not say how long it wants to be left alone. */
const REST_MS = 60_000;
/** Of a node of an older version, which does not know the question about many files. */
const UNKNOWN_REST_MS = 3_600_000;
const CONTENT_TYPE = /^[a-zA-Z0-9!#$&^_.+-]{1,127}\/[a-zA-Z0-9!#$&^_.+-]{1,127}$/;
const HASH_IN_TAG = /[0-9a-f]{64}/;

/** A peer that has answered enough for now has not said whether it has the file; undefined where it has said. */
function restOf({ status, headers }: Response): number | undefined {
  const seconds = Number(headers.get('retry-after'));
  if (status !== 429 && !(status === 503 && seconds > 0)) return undefined;
  return seconds > 0 ? seconds * 1_000 : REST_MS;
}

/** Bytes of the body, as they come, where the peer says so. */
function sizeOf({ headers }: Response): number | undefined {
  const length = headers.get('content-length');
  return length === null || headers.has('content-encoding') ? undefined : Number(length);
}

/**
 * Whether the peer says that it sends another file: of the hash of a STORE message it sends the file of that message, which is no wrong
 * answer. Proxies may add to the tag.
 */
function isOther({ headers }: Response, name: string): boolean {
  const tagged = HASH_IN_TAG.exec(headers.get('etag') ?? '')?.[0];
  return tagged !== undefined && tagged !== name;
}

/** A body that ends with PEER_MISBEHAVED once it came in more parts than its bytes may (link.ts): how many bytes it has nobody knows before. */
function limitParts(body: ReadableStream<Uint8Array>, onMisbehaved: () => void): ReadableStream<Uint8Array> {
  let parts = 0;
  let sizeBytes = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      sizeBytes += chunk.length;
      if (++parts <= partsMaxOf(sizeBytes)) return controller.enqueue(chunk);
      onMisbehaved();
      throw new AppError('PEER_MISBEHAVED', "the peer's file comes in parts of a few bytes");
    },
  });
  return body.pipeThrough(limit);
}

function readHeld(body: Uint8Array, names: readonly string[]): string[] {
  try {
    return decodeHeldFiles(body, names);
  } catch (cause) {
    throw new AppError('PEER_MISBEHAVED', 'the peer did not say which files it has', { cause });
  }
}

/** Which of many files a node has (api/sync.ts). */
function createFindHeld(url: string, onMisbehaved: () => void): NonNullable<FileSource['findHeld']> {
  const { path } = SYNC_API.findHeldFiles;
  return async (names, signal) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      redirect: 'error',
      headers: { 'content-type': 'application/octet-stream' },
      body: Buffer.from(encodeAskedFiles(names)),
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
    });
    if (!response.ok) {
      await response.body?.cancel();
      const isUnknown = response.status === 404 || response.status === 405;
      return { restMs: restOf(response) ?? (isUnknown ? UNKNOWN_REST_MS : REST_MS) };
    }
    try {
      return { held: readHeld(await readLimited(response, HELD_FILES_BODY_BYTES), names) };
    } catch (error) {
      if (error instanceof AppError) onMisbehaved();
      throw error;
    }
  };
}

/** Files of another core node, over its public routes. @param onMisbehaved told of wrong bytes, of bytes in parts that are too small, and of what is no answer */
export function createPeerFileSource(url: string, onMisbehaved: () => void = () => {}): FileSource {
  const root = url.replace(/\/+$/, '');
  return {
    name: url,
    handles: isItemHash64,
    async open(name, signal) {
      const timeout = new AbortController();
      // The answer must begin soon; how long it may take is the caller's to watch.
      const timer = setTimeout(() => timeout.abort(), ANSWER_TIMEOUT_MS);
      try {
        const response = await fetch(`${root}/api/v0/storage/${name}`, {
          redirect: 'error',
          headers: { accept: '*/*' },
          signal: AbortSignal.any([signal, timeout.signal]),
        });
        if (!response.ok || !response.body || isOther(response, name)) {
          await response.body?.cancel();
          const restMs = restOf(response);
          return restMs === undefined ? undefined : { restMs };
        }
        const type = response.headers.get('content-type') ?? '';
        return {
          stream: Readable.fromWeb(limitParts(response.body as ReadableStream<Uint8Array>, onMisbehaved)),
          contentType: CONTENT_TYPE.test(type) ? type.toLowerCase() : 'application/octet-stream',
          sizeBytes: sizeOf(response),
        };
      } finally {
        clearTimeout(timer);
      }
    },
    findHeld: createFindHeld(root, onMisbehaved),
    onWrongBytes: onMisbehaved,
  };
}
