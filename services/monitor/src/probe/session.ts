import http from 'node:http';
import https from 'node:https';
import type { SecureContext } from 'node:tls';
import { createLookup, type Family, findAddresses, type MayReach, refuseUpgrade } from '@skerry/kit';

export interface SessionOptions {
  /** Ends with `/`. */
  readonly url: string;
  readonly family: Family;
  readonly mayReach: MayReach;
  readonly signal: AbortSignal;
  /** Whose certificates are trusted; those that everybody trusts where left out. */
  readonly trusted?: SecureContext | undefined;
}

export interface Answer {
  /** From the request to the last byte of the answer, in seconds. */
  readonly latency: number;
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  /** The address that answered, wherever its name leads before and after. */
  readonly from: string | undefined;
}

export interface GetOptions {
  /** The only status that is a success; any where it is left out. */
  readonly expect?: number;
  readonly timeoutMs: number;
}

/** An answer that is larger is a failure: nothing that is measured is. */
const BODY_BYTES_MAX = 4 * 1024 ** 2;
const HEADER_BYTES_MAX = 16 * 1024;
const DECIMALS = 1e6;

/**
 * Requests to one node over one address family and one connection. A redirect is an answer like any other, so nobody is
 * sent elsewhere. A request fails as a whole: wrong status, too slow by the byte, too large, wrong certificate.
 */
export class Session implements Disposable {
  readonly #options: SessionOptions;
  readonly #agent: http.Agent;
  readonly #base: URL;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#base = new URL(options.url);
    const { family, mayReach, trusted } = options;
    const settings = { keepAlive: true, maxSockets: 1, lookup: createLookup(family, mayReach) };
    this.#agent =
      this.#base.protocol === 'https:'
        ? new https.Agent({ ...settings, ...(trusted && { secureContext: trusted }) })
        : new http.Agent(settings);
  }

  /** @param path below the node's address, without a leading `/` */
  async get(path: string, { expect, timeoutMs }: GetOptions): Promise<Answer | undefined> {
    const { family, mayReach, signal } = this.#options;
    // Name servers of strangers may take as long as they like: a visit that is over looks nothing up.
    if (signal.aborted) return undefined;
    // An address in the place of a name is connected to without being looked up.
    const addresses = await findAddresses(this.#base.hostname, family, mayReach);
    if (addresses.length === 0 || signal.aborted) return undefined;
    const answer = await this.#request(new URL(path, this.#base), timeoutMs);
    return answer !== undefined && (expect === undefined || answer.status === expect) ? answer : undefined;
  }

  #request(url: URL, timeoutMs: number): Promise<Answer | undefined> {
    const { signal } = this.#options;
    return new Promise((resolve) => {
      const begunMs = performance.now();
      const { get } = url.protocol === 'https:' ? https : http;
      const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const request = get(
        url,
        { agent: this.#agent, signal: ended, maxHeaderSize: HEADER_BYTES_MAX, headers: { accept: '*/*' } },
        (response) => {
          // At the end the connection may be gone.
          const from = response.socket.remoteAddress;
          const chunks: Buffer[] = [];
          let size = 0;
          response.on('data', (chunk: Buffer) => {
            size += chunk.length;
            if (size > BODY_BYTES_MAX) request.destroy(new Error('the answer is too large'));
            else chunks.push(chunk);
          });
          response.on('end', () => {
            const latency = Math.round(((performance.now() - begunMs) / 1000) * DECIMALS) / DECIMALS;
            const { statusCode: status = 0, headers } = response;
            const body = Buffer.concat(chunks);
            resolve(response.complete ? { latency, status, headers, body, from } : undefined);
          });
          response.on('error', () => resolve(undefined));
          response.on('close', () => resolve(undefined));
        },
      );
      request.on('error', () => resolve(undefined));
      refuseUpgrade(request);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** What a body says in JSON; undefined for anything else. */
export function readJson(answer: Answer | undefined): unknown {
  if (!answer) return undefined;
  try {
    return JSON.parse(answer.body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** A value deep in what a stranger sent, or undefined. */
export function pick(value: unknown, ...path: string[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}
