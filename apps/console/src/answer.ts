import type { ConsoleFile } from './files.ts';

const FOR_GOOD = 'public, max-age=31536000, immutable';

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/** A file as HTTP has it. */
export interface ConsoleAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** @param accepted the header accept-encoding of the request */
export function answerWith(file: ConsoleFile, accepted: string): ConsoleAnswer {
  const isPacked = /\bgzip\b/.test(accepted);
  return {
    headers: {
      ...HEADERS,
      'content-type': file.type,
      'content-security-policy': file.policy,
      // Its files have hashes in their names: they are kept for good under these names.
      'cache-control': file.isImmutable ? FOR_GOOD : 'no-cache',
      vary: 'accept, accept-encoding',
      ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
    },
    body: Buffer.from(isPacked ? file.gzip : file.bytes),
  };
}
