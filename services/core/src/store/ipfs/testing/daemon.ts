import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { importFile } from 'ipfs-unixfs-importer';
import { CID } from 'multiformats/cid';
import { openCar } from '../car/read.ts';

/** A block of 250 kB takes more than two seconds. */
const SLOW_BYTES = 4_096;
const SLOW_PAUSE_MS = 40;

/** How a daemon can be ill. */
export type Illness = 'hung' | 'silent' | 'slow' | 'full' | 'broken' | 'lying' | 'refusing';

/**
 * A server that speaks the part of kubo's RPC API that is used, with blocks in memory. It stands where a kubo daemon
 * cannot be had, and where one has to be ill on purpose; `SKERRY_TEST_KUBO_URL` puts a real one in its place.
 */
export class TestDaemon implements AsyncDisposable {
  readonly url: string;
  readonly blocks = new Map<string, Uint8Array>();
  readonly pins = new Set<string>();
  /** Bytes of all blocks below a CID, as it says where it is asked; it does not know them by itself. */
  readonly dagBytes = new Map<string, number>();
  illness: Illness | undefined;
  /** Awaited before the pin of a CID is removed, which is refused where it throws. */
  beforeUnpin: (cid: string) => Promise<void> = async () => {};
  requests = 0;
  readonly #server: ReturnType<typeof createServer>;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<TestDaemon> {
    const server = createServer((request, response) => {
      daemon.#serve(request, response).catch((error: Error) => {
        if (!response.headersSent) refuse(response, error.message);
        response.end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const daemon = new TestDaemon(server);
    return daemon;
  }

  /** Puts blocks in by their digests, whichever CID names them. */
  put(bytes: Uint8Array): string {
    const digest = createHash('sha256').update(bytes).digest('hex');
    this.blocks.set(digest, bytes);
    return digest;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests++;
    const { pathname, searchParams } = new URL(request.url!, this.url);
    const arg = searchParams.get('arg') ?? '';
    if (this.illness === 'hung') return;
    if (this.illness === 'silent') return void response.writeHead(200).flushHeaders();
    if (this.illness === 'broken') return void response.end('<html>not what you asked for</html>');
    if (this.illness === 'refusing') return refuse(response, 'the daemon is in a bad mood');
    const isGateway = request.method === 'GET' && pathname.startsWith('/ipfs/');
    // As kubo: "/api/v0 is an RPC-style API: POST only" (kubo documentation, "RPC API v0", "HTTP status codes").
    if (!isGateway && request.method !== 'POST') return void response.writeHead(405).end();
    const unknown = [...searchParams.keys()].find((name) => !OPTIONS.has(name));
    if (!isGateway && unknown !== undefined) return refuse(response, `unknown option ${unknown}`);
    const command = isGateway ? 'block/get' : pathname.replace('/api/v0/', '');
    switch (command) {
      case 'block/get':
        return this.#sendBlock(isGateway ? pathname.slice('/ipfs/'.length) : arg, isGateway, response);
      case 'add':
        return this.#add(request, searchParams.get('cid-version') === '1', response);
      case 'dag/import':
        return this.#importCar(request, response);
      case 'pin/add': {
        response.write(`${JSON.stringify({ Progress: 1 })}\n`);
        this.pins.add(arg);
        return void response.end(`${JSON.stringify({ Pins: [arg] })}\n`);
      }
      case 'dag/stat': {
        const bytes = this.dagBytes.get(arg);
        return bytes === undefined
          ? refuse(response, 'blocks were not found')
          : void response.end(JSON.stringify({ TotalSize: bytes }));
      }
      case 'pin/rm':
        await this.beforeUnpin(arg);
        return this.pins.delete(arg)
          ? void response.end(JSON.stringify({ Pins: [arg] }))
          : refuse(response, 'not pinned or pinned indirectly');
      default:
        response.statusCode = 404;
        return void response.end('404 page not found');
    }
  }

  async #sendBlock(text: string, isGateway: boolean, response: ServerResponse): Promise<void> {
    const digest = Buffer.from(CID.parse(text).multihash.digest).toString('hex');
    const bytes = this.blocks.get(digest);
    if (!bytes) {
      if (isGateway) response.statusCode = 404;
      return isGateway
        ? void response.end()
        : refuse(response, `block was not found locally (offline): ${text}`);
    }
    if (this.illness === 'lying') return void response.end(Buffer.concat([bytes, Buffer.from('!')]));
    if (this.illness !== 'slow') return void response.end(bytes);
    for (let at = 0; at < bytes.length; at += SLOW_BYTES) {
      response.write(bytes.subarray(at, at + SLOW_BYTES));
      await delay(SLOW_PAUSE_MS);
    }
    response.end();
  }

  async #add(request: IncomingMessage, isVersion1: boolean, response: ServerResponse): Promise<void> {
    const form = await buffer(request);
    if (this.illness === 'full') return refuse(response, 'write /data/ipfs/blocks: no space left on device');
    const content = readForm(form, request.headers['content-type'] ?? '');
    if (!content) return refuse(response, 'file argument path is required');
    const store = {
      put: (cid: CID, bytes: unknown) => {
        this.put(bytes as Uint8Array);
        return cid;
      },
    };
    const version = isVersion1 ? ({ cidVersion: 1, rawLeaves: true } as const) : {};
    const { cid } = await importFile({ content }, store, { profile: 'unixfs-v0-2015', ...version });
    this.pins.add(cid.toString());
    response.write(`${JSON.stringify({ Name: 'file', Bytes: content.length })}\n`);
    response.end(`${JSON.stringify({ Name: 'file', Hash: cid.toString(), Size: '1' })}\n`);
  }

  async #importCar(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const content = readForm(await buffer(request), request.headers['content-type'] ?? '');
    if (!content) return refuse(response, 'file argument path is required');
    const { blocks } = await openCar(Readable.from([content]));
    for await (const { bytes } of blocks) this.put(bytes);
    response.end(`${JSON.stringify({ Stats: { BlockCount: 1 } })}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Options of the commands above, as the documentation has them. */
const OPTIONS = new Set([
  ...['pin-roots', 'allow-big-block'],
  ...['arg', 'offline', 'recursive', 'progress', 'pin', 'hash', 'chunker', 'raw-leaves', 'cid-version'],
]);

/** The one file of a form (RFC 7578); undefined where it is no such form. */
function readForm(form: Buffer, contentType: string): Buffer | undefined {
  const boundary = /^multipart\/form-data; boundary=([\w-]{1,70})$/.exec(contentType)?.[1];
  const headerEnd = form.indexOf('\r\n\r\n');
  const [first, ...headers] = form.subarray(0, Math.max(0, headerEnd)).toString().split('\r\n');
  const end = `\r\n--${boundary}--\r\n`;
  const isWhole =
    boundary !== undefined &&
    first === `--${boundary}` &&
    headers.some((line) => /^content-disposition: form-data; name="file"; filename="[^"]+"$/i.test(line)) &&
    form.subarray(-end.length).toString() === end;
  return isWhole ? form.subarray(headerEnd + 4, -end.length) : undefined;
}

function refuse(response: ServerResponse, message: string): void {
  response.statusCode = 500;
  response.end(JSON.stringify({ Message: message, Code: 0, Type: 'error' }));
}
