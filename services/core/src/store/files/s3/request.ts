import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { backoffMs, pause, refuseUpgrade } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import aws4 from 'aws4';

export interface S3Settings {
  /** `http(s)://host[:port]`; the bucket is the first part of the path. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Where those who download reach the object store; undefined where nobody is sent there. */
  readonly publicEndpoint?: string | undefined;
}

/** What the object store is to answer under a link, in the place of what it knows of the object (S3 "GetObject"). */
export interface LinkedAnswer {
  readonly contentType: string;
  readonly contentDisposition: string;
  readonly cacheControl: string;
}

export interface S3Call {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  /** Below the bucket; empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Opens the body anew for each attempt; its length stands in the headers. */
  readonly body?: () => Readable;
}

const ATTEMPTS = 4;
const RETRY_BASE_MS = 100;
const RETRY_MAX_MS = 2_000;
/** Nothing arrives and nothing leaves for so long: the connection is dead. */
const IDLE_MS = 30_000;
/** More than clients who read may have (api/shares/file-reads.ts): the node's own work waits for none of them. */
const SOCKETS = 320;
const ERROR_BYTES_MAX = 16_384;
/** SHA-256 of nothing: what a request without a body signs. */
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** Statuses that another try may cure (S3 "Error responses": InternalError, SlowDown, ServiceUnavailable). */
const PASSING = new Set([429, 500, 502, 503, 504]);

/** Reads a short answer whole; the rest of a long one is not read. */
export async function readText(response: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks).toString('utf8', 0, maxBytes);
}

/** Requests to one bucket, signed with AWS Signature Version 4. Connections are kept and shared. */
export class S3Client {
  readonly #settings: S3Settings;
  readonly #url: URL;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #isSecure: boolean;

  constructor(settings: S3Settings) {
    this.#settings = settings;
    this.#url = new URL(settings.endpoint);
    this.#isSecure = this.#url.protocol === 'https:';
    const options = { keepAlive: true, maxSockets: SOCKETS };
    this.#agent = this.#isSecure ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /** A URL under which anyone reads an object for so long, without a key (Signature Version 4, "query parameters"). */
  linkTo(endpoint: string, key: string, seconds: number, answer: LinkedAnswer): string {
    const { bucket, region, accessKeyId, secretAccessKey } = this.#settings;
    const { origin, host } = new URL(endpoint);
    const query = new URLSearchParams({
      'X-Amz-Expires': String(seconds),
      'response-content-type': answer.contentType,
      'response-content-disposition': answer.contentDisposition,
      'response-cache-control': answer.cacheControl,
    });
    const path = `/${bucket}/${key}?${query}`;
    const signed = aws4.sign(
      { service: 's3', region, method: 'GET', path, headers: { Host: host }, signQuery: true },
      { accessKeyId, secretAccessKey },
    );
    return `${origin}${signed.path}`;
  }

  /** The answer, whatever its status; what may pass is tried again. Throws STORAGE_UNAVAILABLE. */
  async call(call: S3Call, signal = AbortSignal.timeout(86_400_000)): Promise<IncomingMessage> {
    for (let attempt = 1; ; attempt++) {
      let why: string;
      let cause: unknown;
      try {
        const response = await this.#once(call);
        if (!PASSING.has(response.statusCode!)) return response;
        why = `answered ${response.statusCode} ${await readText(response, ERROR_BYTES_MAX)}`;
      } catch (error) {
        if (error instanceof AppError) throw error;
        why = (error as Error).message;
        cause = error;
      }
      if (attempt >= ATTEMPTS || !(await pause(backoffMs(attempt, RETRY_BASE_MS, RETRY_MAX_MS), signal))) {
        throw new AppError('STORAGE_UNAVAILABLE', 'the object store does not answer', {
          cause: new Error(`${call.method} ${call.key}: ${why}`, { cause }),
        });
      }
    }
  }

  async #once({ method, key, query, headers, body }: S3Call): Promise<IncomingMessage> {
    const { bucket, region, accessKeyId, secretAccessKey } = this.#settings;
    const search = query ? `?${new URLSearchParams(query)}` : '';
    const { host, hostname, port } = this.#url;
    const signed = aws4.sign(
      {
        service: 's3',
        region,
        method,
        path: `/${bucket}${key && `/${key}`}${search}`,
        headers: { Host: host, 'X-Amz-Content-Sha256': EMPTY, ...headers },
      },
      { accessKeyId, secretAccessKey },
    );
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const outgoing = (this.#isSecure ? httpsRequest : httpRequest)({
      hostname: hostname.replace(/^\[|\]$/g, ''),
      ...(port ? { port } : {}),
      method,
      path: signed.path!,
      headers: signed.headers!,
      agent: this.#agent as HttpsAgent,
    });
    outgoing.setTimeout(IDLE_MS, () => outgoing.destroy(new Error(`no data for ${IDLE_MS} ms`)));
    outgoing.once('response', resolve).on('error', reject);
    refuseUpgrade(outgoing);
    const source = body?.();
    if (source) {
      source.on('error', (error) => outgoing.destroy(error));
      source.pipe(outgoing);
      // An answer that comes before the body is through must not leave the file open.
      outgoing.once('close', () => source.destroy());
    } else outgoing.end();
    return promise;
  }
}

/** Ends an answer whose body is of no interest, so that its connection can be used again. */
export async function finish(response: IncomingMessage): Promise<void> {
  response.resume();
  await finished(response).catch(() => {});
}

/** What an answer that nobody foresaw means. */
export async function asS3Error(response: IncomingMessage, what: string): Promise<AppError> {
  const text = await readText(response, ERROR_BYTES_MAX).catch(() => '');
  const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1] ?? `status ${response.statusCode}`;
  const cause = new Error(`${what}: ${code}`);
  return response.statusCode === 507 || code === 'QuotaExceeded' || code.endsWith('StorageFull')
    ? new AppError('STORAGE_FULL', 'the object store has no space for this file', { cause })
    : new AppError('STORAGE_UNAVAILABLE', `the object store refused: ${code}`, { cause });
}
