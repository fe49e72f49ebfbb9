import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { explainListenFailure, type Metrics, Slots } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { parseCid } from '../store/ipfs/cid.ts';
import type { Exchange } from './exchange.ts';
import { PEER_LIMITS } from './limits.ts';
import { RecentBlocks } from './recent.ts';

/** The Prometheus text format. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const PATH = /^\/ipfs\/([A-Za-z0-9]{1,100})\?format=raw$/;

export interface Door extends AsyncDisposable {
  readonly url: string;
}

interface DoorOptions {
  readonly host: string;
  readonly port: number;
  readonly findMs: number;
  readonly metrics: Metrics;
  /** What `/health` answers. */
  readonly health: () => object;
}

/** Where the core node asks for blocks that it lacks: a gateway of raw blocks. Beside them, how this process is. */
export async function openDoor(exchange: Exchange, options: DoorOptions): Promise<Door> {
  const { host, port, findMs, metrics, health } = options;
  const searches = metrics.counter('skerry_ipfs_searches_total', 'Blocks that the core node asked for', [
    'result',
  ]);
  const slots = new Slots(PEER_LIMITS.searches, {
    waitingMax: PEER_LIMITS.searchesWaiting,
    waitMs: findMs,
    refusal: 'too many blocks are being looked for',
  });
  // A node reads a root twice, first to see what it is; peers of helia send nobody the same block twice in a row.
  const recent = new RecentBlocks(PEER_LIMITS.recentBytes);
  const find = async (text: string, response: ServerResponse): Promise<Uint8Array> => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(findMs)]);
    const { cid, digest } = parseCid(text);
    const known = recent.get(digest);
    if (known) return known;
    const bytes = await slots.run(() => exchange.find(cid, signal), signal);
    recent.add(digest, bytes);
    return bytes;
  };
  const answer = async ({ method, url = '' }: IncomingMessage, response: ServerResponse) => {
    if (method === 'GET' && url === '/health')
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(health()));
    if (method === 'GET' && url === '/metrics')
      return void response.writeHead(200, { 'content-type': METRICS_TYPE }).end(await metrics.text());
    const text = PATH.exec(url)?.[1];
    if (method !== 'GET' || text === undefined) return void response.writeHead(400).end();
    try {
      const bytes = await find(text, response);
      searches.inc({ result: 'found' });
      response.writeHead(200, { 'content-type': 'application/vnd.ipld.raw' }).end(bytes);
    } catch (error) {
      // Who has it is not known: that is no fault of this peer.
      const code = error instanceof AppError ? error.code : undefined;
      searches.inc({ result: code === 'OVERLOADED' ? 'refused' : 'not_found' });
      response.writeHead(code === 'INVALID_HASH' ? 400 : code === 'OVERLOADED' ? 503 : 404).end();
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(explainListenFailure(error))).listen(port, host, resolve);
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
