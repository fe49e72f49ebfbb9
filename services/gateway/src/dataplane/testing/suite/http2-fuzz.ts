import type { Socket } from 'node:net';
import { randomFrom } from '../../../tls/testing/fuzz.ts';
import type { CreateDataPlane } from '../../port.ts';
import {
  ACK,
  DATA,
  END_HEADERS,
  END_STREAM,
  HEADERS,
  PREFACE,
  RST_STREAM,
  SETTINGS,
  typesOf,
  writeFields,
  writeFrame,
} from './http2-wire.ts';
import { NAME_A, NAME_B, NAME_UNKNOWN, openClient, openWorld, type World } from './world.ts';

const METHODS = ['GET', 'POST', 'HEAD', 'CONNECT', 'x y'];
const NAMES = [NAME_A, NAME_B, NAME_UNKNOWN, ''];
const PATHS = ['/', '*', '', 'a b', 'http://x/'];
const STATUSES = ['200', '204', '304', '100', '101', '103', '600', 'abc'];
const FIELDS = [
  'http2-settings',
  'connection',
  'te',
  'content-length',
  'host',
  'cookie',
  'x-forwarded-for',
  ':path',
  'X',
  '',
];
const VALUES = ['', '0', '5', 'trailers', 'chunked', '\x01', '\xff', ' x ', NAME_A];
const CODES = [0, 2, 8];

type Random = (below: number) => number;

/** Frames of one stream, from either side, some of them out of place. */
function streamMaker(random: Random) {
  const some = <T>(pieces: readonly T[]) => pieces[random(pieces.length)]!;
  const fields = (base: Readonly<Record<string, string>>) =>
    writeFields({
      ...base,
      ...Object.fromEntries(Array.from({ length: random(3) }, () => [some(FIELDS), some(VALUES)])),
    });
  const head = (stream: number, base: Readonly<Record<string, string>>, isLast: boolean) =>
    writeFrame({
      type: HEADERS,
      flags: END_HEADERS | (isLast ? END_STREAM : 0),
      stream,
      payload: fields(base),
    });
  const rest = (stream: number) => [
    ...(random(2) ? [writeFrame({ type: DATA, stream, payload: Buffer.from('hello') })] : []),
    ...(random(2) ? [head(stream, {}, true)] : []),
    ...(random(6)
      ? []
      : [writeFrame({ type: RST_STREAM, stream, payload: Uint8Array.of(0, 0, 0, some(CODES)) })]),
    ...(random(9)
      ? []
      : [writeFrame({ type: random(16), flags: random(256), stream, payload: Buffer.alloc(random(9)) })]),
  ];
  const request = (stream: number) => {
    const target = { ':authority': some(NAMES), ':path': random(3) ? '/' : some(PATHS) };
    const base = { ':method': some(METHODS), ':scheme': 'http', ...target };
    return [head(stream, base, random(3) === 0), ...rest(stream)];
  };
  const answer = (stream: number) => [
    ...(random(2) ? [head(stream, { ':status': some(STATUSES) }, false)] : []),
    head(stream, { ':status': random(3) ? '200' : some(STATUSES) }, random(4) === 0),
    ...rest(stream),
  ];
  return { request, answer };
}

export interface Http2Fuzz extends AsyncDisposable {
  readonly world: World;
  /** Requests that came to an instance. */
  readonly reached: number;
  run(count: number): Promise<void>;
}

/** Clients and instances that speak HTTP/2 of sound and unsound pieces with each other. What a plane throws fails the test. */
export async function openHttp2Fuzz(create: CreateDataPlane, seed: number): Promise<Http2Fuzz> {
  const world = await openWorld(create, { helloTimeoutMs: 300, idleTimeoutMs: 300, keepAliveTimeoutMs: 100 });
  const random = randomFrom(seed);
  const { request, answer } = streamMaker(random);
  let reached = 0;
  const answerAll = (socket: Socket) => {
    let heard = Buffer.alloc(0);
    let answered = 0;
    socket.write(Buffer.concat([writeFrame({ type: SETTINGS }), writeFrame({ type: SETTINGS, flags: ACK })]));
    socket.on('data', (chunk: Buffer) => {
      heard = Buffer.concat([heard, chunk]);
      const asked = typesOf(heard.subarray(PREFACE.length)).filter((type) => type === HEADERS).length;
      for (; answered < asked; answered++) {
        reached++;
        socket.write(Buffer.concat(answer(1 + 2 * answered)));
      }
    });
  };
  for (const instance of [world.httpA, world.httpB]) instance.handle = answerAll;
  const one = async () => {
    const streams = Array.from({ length: 1 + random(4) }, (_, number) => request(1 + 2 * number));
    const client = await openClient(world.ports.http);
    const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
    client.resume().once('end', () => client.end());
    client.write(Buffer.concat([PREFACE, writeFrame({ type: SETTINGS }), ...streams.flat()]));
    if (random(4) === 0) client.once('data', () => client.resetAndDestroy());
    await closed;
  };
  return {
    world,
    get reached() {
      return reached;
    },
    async run(count) {
      await Promise.all(Array.from({ length: count }, one));
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}
