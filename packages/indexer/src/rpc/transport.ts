import http from 'node:http';
import https from 'node:https';
import { createGunzip } from 'node:zlib';
import { refuseUpgrade } from '@skerry/kit/refuse-upgrade';
import { classifyStatus, RpcError } from './failures.ts';

export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** An answer larger than this is treated as a range that was too large. */
const BODY_MAX_BYTES = 128 * 1024 * 1024;
/** Room for one whose length is not told; it doubles. */
const FIRST_BYTES = 64 * 1024;

export interface SendOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

// Node's own client and not fetch: answers are large, and the streams of fetch take several times as long for them.
const agents = {
  'http:': new http.Agent({ keepAlive: true }),
  'https:': new https.Agent({ keepAlive: true }),
};

/**
 * Sends calls in one HTTP request (JSON-RPC 2.0, section 6) and gives the body as it came, in memory of its own. Ids are
 * the places in `calls`. Throws RpcError.
 */
export async function sendCalls(
  url: string,
  calls: readonly Call[],
  { timeoutMs, signal }: SendOptions,
): Promise<Uint8Array> {
  const messages = calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }));
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const body = JSON.stringify(messages.length === 1 ? messages[0] : messages);
    const response = await post(new URL(url), body, AbortSignal.any([timeout, signal]));
    const status = response.statusCode!;
    const answer = await readBody(response);
    // Some tell what is wrong in the body of an error status.
    if (status === 200 || (status === 400 && answer.length > 0 && answer[0] === 0x7b)) return answer;
    throw new RpcError(classifyStatus(status, response.headers['retry-after'] ?? null));
  } catch (error) {
    if (error instanceof RpcError || signal.aborted) throw error;
    if (timeout.aborted) throw new RpcError({ kind: 'timeout' });
    // Its message may hold the address, and the address a key.
    const { code } = error as { code?: unknown };
    throw new RpcError({ kind: 'unreachable', reason: String(code ?? 'the connection failed') });
  }
}

/** A redirection is not followed: it is a status like others. */
function post(url: URL, body: string, signal: AbortSignal): Promise<http.IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'accept-encoding': 'gzip',
  };
  const isPlain = url.protocol === 'http:';
  const agent = agents[isPlain ? 'http:' : 'https:'];
  const request = (isPlain ? http : https).request(url, { method: 'POST', headers, agent, signal }, resolve);
  request.on('error', reject);
  refuseUpgrade(request);
  request.end(body);
  return promise;
}

async function readBody(response: http.IncomingMessage): Promise<Uint8Array> {
  const isPacked = response.headers['content-encoding'] === 'gzip';
  const length = isPacked ? Number.NaN : Number(response.headers['content-length']);
  try {
    if (length > BODY_MAX_BYTES) throw new RpcError({ kind: 'range_too_large', isSent: true });
    const source = isPacked ? response.pipe(createGunzip()) : response;
    // What is piped does not pass its end on where that comes too early.
    if (isPacked) response.on('error', (error) => source.destroy(error));
    return await collect(source, Number.isSafeInteger(length) ? length : FIRST_BYTES);
  } catch (error) {
    // What is left of it would keep the connection.
    response.destroy();
    throw error;
  }
}

/** Most answers say how long they are: no second copy then. */
async function collect(source: AsyncIterable<Uint8Array>, firstBytes: number): Promise<Uint8Array> {
  let body: Uint8Array = Buffer.allocUnsafeSlow(firstBytes);
  let size = 0;
  for await (const chunk of source) {
    if (size + chunk.length > BODY_MAX_BYTES) throw new RpcError({ kind: 'range_too_large', isSent: true });
    if (size + chunk.length > body.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * body.length, size + chunk.length));
      larger.set(body.subarray(0, size));
      body = larger;
    }
    body.set(chunk, size);
    size += chunk.length;
  }
  return size === body.length ? body : body.subarray(0, size);
}
