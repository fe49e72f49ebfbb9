import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { isItemHash64 } from '@skerry/protocol';
import type { FileSource } from '../../store/files/fetcher.ts';

const ANSWER_TIMEOUT_MS = 15_000;
const CONTENT_TYPE = /^[a-zA-Z0-9!#$&^_.+-]{1,127}\/[a-zA-Z0-9!#$&^_.+-]{1,127}$/;

/** Files of another core node, over its public route. */
export function createPeerFileSource(url: string, onWrongBytes?: () => void): FileSource {
  const base = `${url.replace(/\/+$/, '')}/api/v0/storage`;
  return {
    name: url,
    handles: isItemHash64,
    async open(name, signal) {
      const timeout = new AbortController();
      // The answer must begin soon; how long it may take is the caller's to watch.
      const timer = setTimeout(() => timeout.abort(), ANSWER_TIMEOUT_MS);
      try {
        const response = await fetch(`${base}/${name}`, {
          redirect: 'error',
          headers: { accept: '*/*' },
          signal: AbortSignal.any([signal, timeout.signal]),
        });
        if (!response.ok || !response.body) {
          await response.body?.cancel();
          return undefined;
        }
        const type = response.headers.get('content-type') ?? '';
        return {
          stream: Readable.fromWeb(response.body as ReadableStream),
          contentType: CONTENT_TYPE.test(type) ? type.toLowerCase() : 'application/octet-stream',
        };
      } finally {
        clearTimeout(timer);
      }
    },
    ...(onWrongBytes ? { onWrongBytes } : {}),
  };
}
