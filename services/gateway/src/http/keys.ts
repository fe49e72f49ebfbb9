import { createHash, timingSafeEqual } from 'node:crypto';
import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { AppError } from '@skerry/protocol';

/** Who may ask for a sync. Holds digests only; the keys themselves are not kept. */
export interface ApiKeys {
  /** @param authorization the request's header. Throws CREDENTIAL_REQUIRED, CREDENTIAL_REFUSED. */
  check(authorization: string | undefined): void;
}

const BEARER = /^Bearer +([\x21-\x7e]+) *$/i;

const digestOf = (key: string) => createHash('sha256').update(key).digest();

/** Several keys may be valid at the same time, so that one can be replaced without a gap. Without any, nobody may. */
export function createApiKeys(keys: readonly string[]): ApiKeys & { replace(keys: readonly string[]): void } {
  let digests = keys.map(digestOf);
  return {
    replace(others) {
      digests = others.map(digestOf);
    },
    check(authorization) {
      const key = BEARER.exec(authorization ?? '')?.[1];
      if (key === undefined)
        throw new AppError(
          'CREDENTIAL_REQUIRED',
          'this requires the header "Authorization: Bearer <API_KEY>"',
        );
      const digest = digestOf(key);
      // Every key is compared, and each in constant time: how long it takes says nothing.
      let matches = 0;
      for (const one of digests) matches += Number(timingSafeEqual(one, digest));
      if (matches === 0) throw new AppError('CREDENTIAL_REFUSED', 'this API key is not valid');
    },
  };
}

const LOOK_AGAIN_MS = 1_000;

/**
 * Calls `changed` with the file's keys whenever it has been written or replaced. A file that cannot be read changes nothing:
 * `failed` is told, and the keys that were valid stay so.
 */
export function watchKeyFile(
  path: string,
  changed: (keys: string[]) => void,
  failed: (error: unknown) => void,
): Disposable {
  // Looks at the file's times: that also sees a file that is put in its place, or on another file system.
  const listener = () => void readKeyFile(path).then(changed, failed);
  watchFile(path, { interval: LOOK_AGAIN_MS, persistent: false }, listener);
  return { [Symbol.dispose]: () => unwatchFile(path, listener) };
}

/** One key a line; empty lines and lines that begin with # do not count. Throws INVALID_CONFIG. */
export async function readKeyFile(path: string): Promise<string[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new AppError('INVALID_CONFIG', `cannot read the API key file: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}
