import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TEST_CACHE } from '../dataplane/native/testing/built.ts';
import { randomFrom } from '../tls/testing/fuzz.ts';
import { helloMessage, joined } from '../tls/testing/hello.ts';
import { MAX_QUIC_HELLO_BYTES } from './crypto-stream.ts';
import { MAX_INITIALS } from './initial-reader.ts';
import { VERSION_1, VERSION_2 } from './packet.ts';
import { cutAt, inDatagrams, mutateFlight, shuffled } from './testing/flights.ts';
import { cryptoFrame, DESTINATION, initialDatagram, longHead, padded, varint } from './testing/initials.ts';
import { buildNativeReader, type Flight, readHere, readNatively } from './testing/native-reader.ts';
import { REAL_FLIGHTS } from './testing/real-flights.ts';

const NAME = 'farm-manage-desk-seek.skerry.localhost';
const REAL = REAL_FLIGHTS.map(({ datagrams }) => datagrams);
const paths = {
  'with the instructions of this processor': await buildNativeReader(TEST_CACHE),
  'without them': await buildNativeReader(TEST_CACHE, true),
};

async function compare(path: string, flights: readonly Flight[]): Promise<Map<string, number>> {
  const theirs = await readNatively(path, flights);
  const kinds = new Map<string, number>();
  for (const [index, flight] of flights.entries()) {
    const ours = readHere(flight);
    kinds.set(ours.kind, (kinds.get(ours.kind) ?? 0) + 1);
    if (JSON.stringify(ours) !== JSON.stringify(theirs[index]))
      assert.deepEqual(
        theirs[index],
        ours,
        flight.map((wire) => Buffer.from(wire).toString('hex')).join('\n'),
      );
  }
  return kinds;
}

for (const [how, path] of Object.entries(paths)) {
  describe(`both readers of QUIC flights, ${how}`, () => {
    test('find the name in what Chromium and ngtcp2 send', async () => {
      const found = await readNatively(path, REAL);
      for (const answer of found) assert.deepEqual(answer, { kind: 'server_name', serverName: NAME });
      await compare(path, [...REAL, ...REAL.flatMap((flight) => flight.map((datagram) => [datagram]))]);
    });

    test('agree on a hello cut at every place, in both versions, and at the limits', async () => {
      const random = randomFrom(7);
      const hello = helloMessage({ serverName: NAME });
      const cut = ([VERSION_1, VERSION_2] as const).flatMap((version) =>
        Array.from(hello, (_, place) =>
          inDatagrams(shuffled(cutAt(hello, [place]), random), { version }, random),
        ),
      );
      const base = helloMessage({ serverName: NAME, keyShareBytes: 0 }).length;
      const places = Array.from({ length: 40 }, (_, index) => index * 800);
      const large = [-1, 0, 1].map((more) => {
        const message = helloMessage({ serverName: NAME, keyShareBytes: MAX_QUIC_HELLO_BYTES - base + more });
        return inDatagrams(cutAt(message, places), {}, random);
      });
      const many = Array.from({ length: MAX_INITIALS + 1 }, (_, number) => initialDatagram([], { number }));
      const kinds = await compare(path, [...cut, ...large, many.slice(1), many]);
      assert.deepEqual(
        [kinds.get('server_name'), kinds.get('need_more'), kinds.get('malformed')],
        [2 * hello.length + 2, 1, 2],
      );
    });

    test('agree that early data alone says nothing, and that it may come before the hello', async () => {
      const early = joined(
        longHead(0xd0, VERSION_1, DESTINATION, DESTINATION),
        varint(20),
        new Uint8Array(20),
      );
      const hello = initialDatagram([cryptoFrame(0, helloMessage({ serverName: NAME }))]);
      const alone = [early, padded(early)];
      const kinds = await compare(path, [...alone.map((one) => [one]), ...alone.map((one) => [one, hello])]);
      assert.deepEqual(
        [...kinds],
        [
          ['unread', 2],
          ['server_name', 2],
        ],
      );
    });

    test('agree on 1,000 damaged ones, of every kind', async () => {
      const random = randomFrom(20260401);
      const kinds = await compare(
        path,
        Array.from({ length: 1_000 }, () => mutateFlight(random, REAL)),
      );
      for (const kind of ['unread', 'need_more', 'server_name', 'no_server_name', 'malformed'])
        assert.ok((kinds.get(kind) ?? 0) > 10, `${kind} ${kinds.get(kind)}`);
    });
  });
}
