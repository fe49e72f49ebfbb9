import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSigner, generatePrivateKey, signMessage } from '@skerry/client';
import { answerWith, openConsole } from '@skerry/console';
import type { InfoView } from '@skerry/protocol/api/core/node';

/** A core node that never was: the console's files, and events as core nodes stream them, as many a second as wanted. */
export interface MadeUpNode extends AsyncDisposable {
  readonly url: string;
  /** How many events there are by now. */
  total(): number;
  /** Ends every stream, in the midst of an event. */
  cut(): void;
}

const TICK_MS = 20;
/** What a stream is given at once: one that was cut catches up in pieces. */
const PIECE_EVENTS = 5_000;
const TYPES = ['POST', 'AGGREGATE', 'STORE', 'INSTANCE'];

/** A signed message: what the page checks of each row that is seen. Of the same sender all the time, and so another one than the row says. */
const SHARED = signMessage(
  { type: 'POST', content: { type: 'soak', content: 'x'.repeat(300) } },
  createSigner(generatePrivateKey()),
).body;

/** The event of a number, in the wire form of docs/api.md. Its hash is its number, so that a reader can be looked through for gaps. */
function eventOf(number: number, timeMs: number): string {
  const data = {
    item_hash: number.toString(16).padStart(64, '0'),
    type: TYPES[number % TYPES.length],
    chain: 'ETH',
    sender: `0x${(number % 97).toString(16).padStart(40, '0')}`,
    channel: `soak-${number % 13}`,
    timestamp: Math.floor(timeMs / 1_000),
    content_type: number % 3 === 0 ? 'net-instance-status' : null,
  };
  const event = { cursor: String(number), kind: 'message', time_ms: timeMs, data, shared: SHARED };
  const body = JSON.stringify(event);
  return `id: ${number}\nevent: message\ndata: ${body}\n\n`;
}

const NOBODY: InfoView['trust']['schedulers'] = { value: [], source: 'unset' };
const INFO: InfoView = {
  node_multi_addresses: [],
  name: 'made up',
  version: '0.0.0',
  address: `0x${'0'.repeat(40)}`,
  trust: {
    schedulers: NOBODY,
    scoring_publishers: NOBODY,
    credit_publishers: NOBODY,
    known_core_nodes: NOBODY,
    credit_enforcement: { value: false, source: 'unset' },
  },
};
const EMPTY = { messages: [], instances: [], events: [], pagination: { total: 0 } };

/** What the routes beside the events answer: there is nothing but them. */
const answerOf = (path: string, total: number) =>
  JSON.stringify(path.endsWith('public.json') ? INFO : { ...EMPTY, next_cursor: String(total) });

/** @param perSecond from when the first stream is opened */
export async function startMadeUpNode(perSecond: number): Promise<MadeUpNode> {
  const files = openConsole();
  const streams = new Set<{ at: number; readonly response: ServerResponse }>();
  let startMs: number | undefined;
  const total = () => (startMs === undefined ? 0 : Math.floor(((Date.now() - startMs) * perSecond) / 1_000));
  const feed = () => {
    const until = total();
    for (const stream of streams) {
      if (stream.response.writableNeedDrain) continue;
      const to = Math.min(until, stream.at + PIECE_EVENTS);
      let text = '';
      while (stream.at < to) text += eventOf(++stream.at, Date.now());
      if (text !== '') stream.response.write(text);
    }
  };
  const follow = (at: number, response: ServerResponse) => {
    startMs ??= Date.now();
    const stream = { at, response };
    streams.add(stream);
    response.on('close', () => streams.delete(stream));
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    const cursor = searchParams.get('cursor');
    if (pathname === '/api/v0/events' && cursor !== 'latest') return follow(Number(cursor), response);
    if (pathname.startsWith('/api/') || pathname.endsWith('.json')) {
      return response.writeHead(200, { 'content-type': 'application/json' }).end(answerOf(pathname, total()));
    }
    const file = await files.find(pathname.slice(1));
    if (!file) return response.writeHead(404).end();
    const { headers, body } = answerWith(file, 'gzip');
    return response.writeHead(200, headers).end(body);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const timer = setInterval(feed, TICK_MS);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    total,
    cut() {
      for (const { at, response } of streams) {
        response.write(eventOf(at + 1, Date.now()).slice(0, 100));
        // What was written goes out before the connection ends.
        setImmediate(() => response.destroy());
      }
      streams.clear();
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
