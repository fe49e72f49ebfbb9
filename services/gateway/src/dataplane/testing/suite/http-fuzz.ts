import { randomFrom } from '../../../tls/testing/fuzz.ts';
import type { CreateDataPlane } from '../../port.ts';
import { serveHttp } from './http-client.ts';
import { NAME_A, NAME_B, NAME_UNKNOWN, openClient, openWorld } from './world.ts';

/** Only what hangs takes as long. */
const ANSWER_WITHIN_MS = 60_000;
const STARTS = [
  'GET / HTTP/1.1\r\n',
  'POST /x HTTP/1.1\r\n',
  'GET / HTTP/1.0\r\n',
  `GET http://${NAME_A}/ HTTP/1.1\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
];
const HOSTS = [`Host: ${NAME_A}\r\n`, `Host: ${NAME_B}\r\n`, `host: ${NAME_UNKNOWN}\r\n`];
const HEADERS = [
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Content-Length: 5, 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: \tchunked\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Connection: keep-alive\r\n',
  'Connection: close, host\r\n',
  'Connection: Upgrade\r\nUpgrade: x\r\n',
  'Expect: 100-continue\r\n',
  'X-A: b\r\n c\r\n',
  `Host: ${NAME_A}\r\n`,
];
const BODIES = [
  '',
  '0\r\n\r\n',
  '5\r\nhello\r\n',
  '5;ext="a\r\nhello\r\n',
  'fffffffffffffffff\r\n',
  'hello',
  'hello0\r\n\r\n',
];
const ODD = ['\0', '\r', '\n', ' ', '\t', ':', '\x7f', '\xff', ',', ';'];

export interface HttpFuzz extends AsyncDisposable {
  /** What should not have been, in words. */
  readonly problems: readonly string[];
  /** Requests that came to an instance. */
  readonly reached: number;
  run(count: number): Promise<void>;
}

/** Makes requests of pieces, some of them damaged. */
function requestMaker(random: (below: number) => number): () => Buffer {
  const some = (pieces: readonly string[]) => pieces[random(pieces.length)]!;
  const message = () => {
    const headers = Array.from({ length: random(3) }, () => some(HEADERS));
    return [some(STARTS), some(HOSTS), ...headers, '\r\n', random(2) ? '' : some(BODIES)].join('');
  };
  return () => {
    let text = Array.from({ length: random(4) ? 1 : 2 }, message).join('');
    for (let damage = random(2) * random(3); damage > 0; damage--) {
      const at = random(text.length + 1);
      text = text.slice(0, at) + some(ODD) + text.slice(at + random(2));
    }
    return Buffer.from(text, 'latin1');
  };
}

/** Requests made of sound and unsound pieces, and what becomes of them. */
export async function openHttpFuzz(create: CreateDataPlane, seed: number): Promise<HttpFuzz> {
  const world = await openWorld(create, { helloTimeoutMs: 300, idleTimeoutMs: 400 });
  const random = randomFrom(seed);
  const problems: string[] = [];
  let reached = 0;
  for (const [instance, name] of [
    [world.httpA, NAME_A],
    [world.httpB, NAME_B],
  ] as const) {
    const server = serveHttp(instance, (request, response) => {
      reached++;
      if (request.headers.host?.toLowerCase().split(':')[0] !== name)
        problems.push(`a request for ${request.headers.host} came to ${name}`);
      request.resume().on('end', () => response.end('ok'));
      request.on('error', () => {});
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      // A client that goes away in the middle cuts its request: that is no unsound one.
      if (error.code?.startsWith('HPE_') && error.code !== 'HPE_INVALID_EOF_STATE')
        problems.push(`an instance got what is not HTTP: ${error.code}`);
      socket.destroy();
    });
  }

  const build = requestMaker(random);
  const one = async () => {
    const wire = build();
    const client = await openClient(world.ports.http);
    const ended = new Promise<void>((resolve) => client.once('close', () => resolve()));
    client.resume().once('end', () => client.end());
    const cut = random(wire.length + 1);
    client.write(wire.subarray(0, cut));
    client.end(wire.subarray(cut));
    const timer = setTimeout(() => {
      problems.push(`no answer and no end: ${JSON.stringify(wire.toString('latin1'))}`);
      client.destroy();
    }, ANSWER_WITHIN_MS);
    await ended;
    clearTimeout(timer);
  };
  return {
    problems,
    get reached() {
      return reached;
    },
    async run(count) {
      await Promise.all(Array.from({ length: count }, one));
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}
