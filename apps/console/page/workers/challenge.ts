import { NODE_PROOF_BYTES_MAX, NODE_PROOF_PATH } from '@skerry/protocol';
import { readUpTo } from '../pure/read-body.ts';

const TIMEOUT_MS = 10_000;
const CHALLENGE_BYTES = 32;

export interface Challenged {
  readonly status: number;
  readonly body: Uint8Array;
  /** What was to be signed, made up for this question. */
  readonly challenge: string;
}

/** Asks what answers at a place for a proof of its key. @param query what else the question says. Rejects without an answer. */
export async function challengeAt(
  place: string,
  query: Readonly<Record<string, string>> = {},
): Promise<Challenged> {
  const challenge = Array.from(crypto.getRandomValues(new Uint8Array(CHALLENGE_BYTES)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
  const response = await fetch(`${place}${NODE_PROOF_PATH}?${new URLSearchParams({ challenge, ...query })}`, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
    credentials: 'omit',
    redirect: 'error',
  });
  return { status: response.status, body: await readUpTo(response, NODE_PROOF_BYTES_MAX), challenge };
}
