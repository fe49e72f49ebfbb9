import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { askRaw, statusOf } from './testing/suite/http-client.ts';
import { type Instance, NAME_A, NAME_B, openWorld } from './testing/suite/world.ts';
import { TsDataPlane } from './ts/plane.ts';

/** All that comes to an instance, which takes everything and answers once. */
function listenTo(instance: Instance): () => string {
  let heard = '';
  instance.handle = (socket: Socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      heard += bytes.toString('latin1');
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok');
    });
  };
  return () => heard;
}

/** What is taken for a request is kept no longer than this. */
const SHORT = { keepAliveTimeoutMs: 300, helloTimeoutMs: 1_000, idleTimeoutMs: 1_000 };
const SMUGGLED = `GET /smuggled HTTP/1.1\r\nHost: ${NAME_B}\r\nConnection: close\r\n\r\n`;
const get = (...lines: string[]) => `GET / HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
const HOST = `Host: ${NAME_A}`;
const post = (framing: string, body: string) =>
  `POST / HTTP/1.1\r\n${HOST}\r\n${framing}\r\n\r\n${body}${SMUGGLED}`;
const CHUNKED = 'Transfer-Encoding: chunked';

/** What two readers may take for different requests. */
const AMBIGUOUS: Readonly<Record<string, string>> = {
  'lines that end with LF alone': `GET / HTTP/1.1\n${HOST}\n\n`,
  'one line that ends with LF alone': `GET / HTTP/1.1\r\n${HOST}\r\nX: y\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
  'a head that ends with LF alone': `GET / HTTP/1.1\r\n${HOST}\r\n\n${SMUGGLED}`,
  'CR alone within a value': get(HOST, `X: y\rHost: ${NAME_B}`),
  'a folded coding': post('Transfer-Encoding:\r\n chunked', `0\r\n\r\n`),
  'a folded host': get('Host:', ` ${NAME_A}`),
  'a first line of headers that begins with a space': get(` ${HOST}`, `Host: ${NAME_B}`),
  'a space before the colon of the host': get(`Host : ${NAME_B}`, HOST),
  'a header without a name': get(HOST, `: ${NAME_B}`),
  'a header without a colon': get(HOST, 'X'),
  'NUL in a value': get(HOST, 'X: \0y'),
  'a vertical tab in a coding': post('Transfer-Encoding: \x0bchunked', '0\r\n\r\n'),
  'two hosts in one': get(`Host: ${NAME_A}, ${NAME_B}`),
  'a host in the target with a user': `GET http://${NAME_B}@${NAME_A}/ HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'another host in the target': `GET http://${NAME_B}/ HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'a target of another scheme': `GET https://${NAME_A}/ HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'a space in the target': `GET /a HTTP/1.1 HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'a tab after the method': `GET\t/ HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'a version of the future': `GET / HTTP/1.9\r\n${HOST}\r\n\r\n`,
  'the second version without its preface': `GET / HTTP/2.0\r\n${HOST}\r\n\r\n`,
  'no version': `GET /\r\n${HOST}\r\n\r\n`,
  'an empty length': post('Content-Length:', ''),
  'a length in hexadecimal': post('Content-Length: 0x4', 'abcd'),
  'a length below zero': post('Content-Length: -1', ''),
  'two lengths in one': post('Content-Length: 4, 4', 'abcd'),
  'a length beyond all numbers': post('Content-Length: 18446744073709551620', 'abcd'),
  'a chunk of hexadecimal with its sign': post(CHUNKED, '0x4\r\nabcd\r\n0\r\n\r\n'),
  'a chunk with a plus': post(CHUNKED, '+4\r\nabcd\r\n0\r\n\r\n'),
  'a chunk of a size below zero': post(CHUNKED, '-4\r\nabcd\r\n0\r\n\r\n'),
  'a chunk size that ends with LF alone': post(CHUNKED, '4\nabcd\r\n0\r\n\r\n'),
  'an extension of a chunk with LF alone': post(CHUNKED, '4;x\nabcd\r\n0\r\n\r\n'),
  'a chunk that ends with LF alone': post(CHUNKED, '4\r\nabcd\n0\r\n\r\n'),
  'a chunk that does not end': post(CHUNKED, '4\r\nabcdXX0\r\n\r\n'),
  'a chunk size beyond all numbers': post(CHUNKED, '10000000000000004\r\nabcd\r\n0\r\n\r\n'),
};

describe('what two readers may take for different requests', () => {
  for (const [what, wire] of Object.entries(AMBIGUOUS))
    test(`${what} is refused, and nothing of it comes to another instance`, async () => {
      await using world = await openWorld((options) => new TsDataPlane(options), SHORT);
      const [heardByA, heardByB] = [listenTo(world.httpA), listenTo(world.httpB)];
      const answer = await askRaw(world.ports.http, wire).catch(() => '');
      assert.equal(heardByB(), '', answer);
      // A body that turns out to be broken has gone on its way, up to there.
      if (wire.includes(CHUNKED)) assert.ok(!heardByA().includes('smuggled'), heardByA());
      else assert.deepEqual([statusOf(answer), heardByA()], [400, ''], answer);
    });
});
