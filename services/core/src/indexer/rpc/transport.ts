import { classifyStatus, RpcError } from './failures.ts';

export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** An answer larger than this is treated as a range that was too large. */
const BODY_MAX_BYTES = 128 * 1024 * 1024;

export interface SendOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends calls in one HTTP request (JSON-RPC 2.0, section 6) and gives the body as it came. Ids are the places in `calls`.
 * Throws RpcError.
 */
export async function sendCalls(
  url: string,
  calls: readonly Call[],
  { timeoutMs, signal }: SendOptions,
): Promise<Uint8Array> {
  const messages = calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }));
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(messages.length === 1 ? messages[0] : messages),
      redirect: 'error',
      signal: AbortSignal.any([timeout, signal]),
    });
    if (response.status !== 200) {
      const body = await readBody(response);
      // Some tell what is wrong in the body of an error status.
      if (response.status === 400 && body.length > 0 && body[0] === 0x7b) return body;
      throw new RpcError(classifyStatus(response.status, response.headers.get('retry-after')));
    }
    return await readBody(response);
  } catch (error) {
    if (error instanceof RpcError || signal.aborted) throw error;
    if (timeout.aborted) throw new RpcError({ kind: 'timeout' });
    // The cause may hold the address, and the address a key.
    const { cause } = error as { cause?: { code?: unknown } };
    throw new RpcError({ kind: 'unreachable', reason: String(cause?.code ?? 'the connection failed') });
  }
}

async function readBody(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > BODY_MAX_BYTES) throw new RpcError({ kind: 'range_too_large' });
    chunks.push(chunk);
  }
  if (chunks.length === 1) return chunks[0]!;
  const body = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}
