import { NODE_PROOF_BYTES_MAX, NODE_PROOF_PATH } from '@skerry/protocol';

const TIMEOUT_MS = 10_000;
const CHALLENGE_BYTES = 32;

/** The first bytes of an answer, as many as a proof may have and one more: a stranger may send any number. */
async function readBounded({ body }: Response): Promise<Uint8Array> {
  const bytes: number[] = [];
  const reader = body?.getReader();
  while (reader && bytes.length <= NODE_PROOF_BYTES_MAX) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes.push(...value.subarray(0, NODE_PROOF_BYTES_MAX + 1 - bytes.length));
  }
  await reader?.cancel();
  return new Uint8Array(bytes);
}

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
  return { status: response.status, body: await readBounded(response), challenge };
}
