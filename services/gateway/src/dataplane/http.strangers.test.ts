import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import type { HttpAccessRecord } from './port.ts';
import { askRaw, serveHttp } from './testing/suite/http-client.ts';
import { openHttp2, serveHttp2 } from './testing/suite/http2-client.ts';
import { isOwed, pour } from './testing/suite/unread.ts';
import {
  endingOf,
  expectTurnedAway,
  NAME_A,
  openClient,
  openWorld,
  readBytes,
  until,
  type World,
} from './testing/suite/world.ts';
import { forwardedHeaders, isSaidByProxies, mayBeTrailer } from './ts/http/headers.ts';
import { HttpJournal } from './ts/http/journal.ts';
import { TsDataPlane } from './ts/plane.ts';

const FORGED = [
  'Forwarded',
  'X-Forwarded-For',
  'X_Forwarded_For',
  'X-Forwarded_Port',
  'X-Forwarded-Ssl',
  'X-Forwarded-Prefix',
  'X-Real-IP',
  'X_Real_IP',
  'True-Client-IP',
  'X-Client-IP',
  'CF-Connecting-IP',
  'X-Original-URL',
  'X-Rewrite-URL',
  'Proxy',
];
const create = (options: ConstructorParameters<typeof TsDataPlane>[0]) => new TsDataPlane(options);

const HEADS = {
  'a body': {
    asked: `POST / HTTP/1.1\r\nHost: ${NAME_A}\r\nContent-Length: ${2 ** 40}\r\n\r\n`,
    answered: '',
  },
  'a switched connection': {
    asked: `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`,
    answered: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n',
  },
} as const;

/** A client whose instance takes nothing of what it sends, once nothing of that moves. */
async function openBlocked(
  { httpA, ports, upstreamHttpPort }: World,
  { asked, answered }: (typeof HEADS)[keyof typeof HEADS] = HEADS['a body'],
): Promise<Socket> {
  httpA.handle = (socket) => void socket.pause().write(answered);
  const client = await openClient(ports.http);
  client.write(asked);
  if (answered) await readBytes(client, answered.length);
  pour(client);
  await until(async () => (await isOwed(upstreamHttpPort)) && (await isOwed(ports.http)));
  return client;
}

const textOf = async (stream: NodeJS.ReadableStream) => {
  let text = '';
  for await (const chunk of stream) text += chunk;
  return text;
};

describe('what strangers say to instances', () => {
  test('no request makes a line of the access log as long as it likes', () => {
    const told: HttpAccessRecord[] = [];
    const access = {
      every: 1,
      tell: () => {},
      tellHttp: (record: HttpAccessRecord) => void told.push(record),
    };
    const journal = new HttpJournal({ access });
    const long = 'A'.repeat(16_000);
    journal.begin({ class: 'http2', clientAddress: '::1', method: long, authority: long })({
      status: 400,
      refusedWith: 'INVALID_HOST',
    });
    assert.ok(JSON.stringify(told).length < 1000);
  });

  test('L1: no client names itself by a header that proxies write, in any spelling, over HTTP/1.1', async () => {
    await using world = await openWorld(create);
    serveHttp(world.httpA, (request, response) => response.end(JSON.stringify(request.rawHeaders)));
    const wire = ['GET / HTTP/1.1', `Host: ${NAME_A}`, 'Connection: close', 'X-Kept: 1']
      .concat(FORGED.map((name) => `${name}: 6.6.6.6`))
      .concat('', '')
      .join('\r\n');
    const answer = await askRaw(world.ports.http, wire);
    const raw = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as string[];
    assert.ok(!raw.some((text) => text.includes('6.6.6.6')), raw.join(' '));
    assert.ok(raw.includes('X-Kept') && raw[raw.indexOf('X-Forwarded-For') + 1] === '127.0.0.1');
  });

  test('a tunnel that is asked for behind a request is not refused in the place of its answer', async () => {
    await using world = await openWorld(create);
    serveHttp(world.httpA, (_request, response) => response.write('begun'));
    const wire = `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\nCONNECT ${NAME_A}:22 HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`;
    assert.equal(await askRaw(world.ports.http, wire).catch(() => ''), '');
  });

  for (const [name, head] of Object.entries(HEADS))
    test(`a client that resets its connection is noticed while its instance takes nothing: ${name}`, async () => {
      await using world = await openWorld(create);
      const client = await openBlocked(world, head);
      client.resetAndDestroy();
      await until(async () => (await world.plane.stats()).httpOpen === 0);
    });

  test('what an instance has not taken of a request is not kept once nobody waits for the answer', async () => {
    await using world = await openWorld(create, { idleTimeoutMs: 1_000 });
    const client = await openBlocked(world);
    await until(async () => !(await isOwed(world.upstreamHttpPort)));
    client.destroy();
  });

  test('where no place is left, who has none takes the oldest of the client that has most', async () => {
    await using world = await openWorld(create, { maxConnections: 3 });
    serveHttp(world.httpA, (_request, response) => response.end('answer'));
    const { http } = world.ports;
    const open = async (from: string) => {
      const client = await openClient(http, '127.0.0.1', from);
      client.write(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`);
      return client;
    };
    const many = [await open('127.0.0.1'), await open('127.0.0.1'), await open('127.0.0.1')];
    for (const client of many) assert.match(String(await readBytes(client, 15)), /^HTTP\/1.1 200/);
    await expectTurnedAway(http);
    const others = [await open('127.0.0.3'), await open('127.0.0.4')];
    for (const client of others) assert.match(String(await readBytes(client, 15)), /^HTTP\/1.1 200/);
    for (const gone of many.slice(0, 2)) await endingOf(gone);
    // Everybody has one, and keeps it.
    await expectTurnedAway(http, '127.0.0.5');
    const { httpOpen, httpYielded } = await world.plane.stats();
    assert.deepEqual([httpOpen, httpYielded], [3, 2]);
    for (const client of [many[2]!, ...others]) client.destroy();
  });

  test('L1: nor over HTTP/2, in its trailers neither', async () => {
    await using world = await openWorld(create);
    serveHttp2(world.httpA, (stream, headers) => {
      let trailers: IncomingHttpHeaders = {};
      stream.once('trailers', (found) => {
        trailers = found;
      });
      stream
        .resume()
        .once('end', () => setImmediate(() => stream.end(JSON.stringify({ headers, trailers }))));
    });
    using opened = await openHttp2(world);
    const forged = Object.fromEntries(FORGED.map((name) => [name.toLowerCase(), '6.6.6.6']));
    const asked = opened.session.request(
      { ':authority': NAME_A, ':method': 'POST', ':path': '/', ...forged } as OutgoingHttpHeaders,
      { waitForTrailers: true },
    );
    asked.once('wantTrailers', () =>
      asked.sendTrailers({ ...forged, host: 'other.example', authorization: '6.6.6.6', 'x-kept': '1' }),
    );
    asked.end('body');
    const { headers, trailers } = JSON.parse(await textOf(asked));
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.ok(!JSON.stringify(headers).includes('6.6.6.6'), JSON.stringify(headers));
    assert.deepEqual(trailers, { 'x-kept': '1' });
  });

  test('L1: what is taken back at once reaches no instance, and who goes on taking back is cut off', async () => {
    await using world = await openWorld(create);
    let reached = 0;
    const nameless: string[] = [];
    serveHttp2(world.httpA, (stream, headers) => {
      reached++;
      if (!headers['x-forwarded-for']) nameless.push(String(headers.forwarded));
      stream.respond({ ':status': 200 });
    });
    using opened = await openHttp2(world);
    const { session } = opened;
    const flood = async () => {
      for (let n = 0; n < 100; n++) {
        const stream = session.request({ ':authority': NAME_A, ':path': '/' });
        stream.on('error', () => {});
        stream.close(8);
      }
      await new Promise(setImmediate);
    };
    const begun = performance.now();
    for (let round = 0; round < 20 && !session.destroyed && !session.closed; round++) await flood();
    await until(() => session.destroyed || session.closed);
    await until(async () => (await world.plane.stats()).httpOpen === 0);
    // So many at once, and so many a second.
    const allowed = 300 + (33 * (performance.now() - begun)) / 1000;
    assert.ok(reached <= allowed, `${reached} reached the instance`);
    assert.deepEqual(nameless, []);
  });
});

test('L1: a trailer neither frames, routes nor names anybody', () => {
  for (const name of [
    'host',
    'x-forwarded-for',
    'x_forwarded_for',
    'content-length',
    ':path',
    'cookie',
    'te',
  ])
    assert.equal(mayBeTrailer(name), false, name);
  assert.equal(mayBeTrailer('grpc-status'), true);
  for (const [name] of forwardedHeaders('192.0.2.1', 'a.example'))
    assert.ok(isSaidByProxies(name.toLowerCase()), name);
});
