import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { randomFrom } from '../tls/testing/fuzz.ts';
import { helloMessage, joined } from '../tls/testing/hello.ts';
import { MAX_PIECES, MAX_QUIC_HELLO_BYTES } from './crypto-stream.ts';
import {
  type InitialAnswer,
  InitialReader,
  MAX_INITIALS,
  MAX_PACKETS_PER_DATAGRAM,
} from './initial-reader.ts';
import { initialKeys } from './keys.ts';
import {
  MAX_ID_BYTES,
  MIN_FIRST_ID_BYTES,
  readPacket,
  VERSION_1,
  VERSION_2,
  type Version,
} from './packet.ts';
import { cutAt, inDatagrams, shuffled } from './testing/flights.ts';
import {
  cryptoFrame,
  DESTINATION,
  initialDatagram,
  longHead,
  longVarint,
  padded,
  sealInitial,
  varint,
} from './testing/initials.ts';
import { REAL_FLIGHTS } from './testing/real-flights.ts';

const NAME = 'farm-manage-desk-seek.skerry.localhost';
const FOUND: InitialAnswer = { kind: 'server_name', serverName: NAME };
const HELLO = helloMessage({ serverName: NAME });
const VERSIONS: readonly Version[] = [VERSION_1, VERSION_2];

function read(...datagrams: Uint8Array[]): InitialAnswer {
  const reader = new InitialReader();
  let answer: InitialAnswer = { kind: 'unread' };
  for (const datagram of datagrams) answer = reader.push(datagram);
  return answer;
}
const kindOf = (...datagrams: Uint8Array[]) => read(...datagrams).kind;
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** RFC 9001 appendix A, RFC 9369 appendix A: of the same client's first packet. */
const RFC = {
  [VERSION_1]: {
    client: [
      '1f369613dd76d5467730efcbe3b1a22d',
      'fa044b2f42a3fd3b46fb255c',
      '9f50449e04a0e810283a1e9933adedd2',
    ],
    server: [
      'cf3a5331653c364c88f0f379b6067e37',
      '0ac1493ca1905853b0bba03e',
      'c206b8d9b9f0f37644430b490eeaa314',
    ],
    packet: 'c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9bd8ba',
    tag: 'e221af44860018ab0856972e194cd934',
  },
  [VERSION_2]: {
    client: [
      '8b1a0bc121284290a29e0971b5cd045d',
      '91f73e2351d8fa91660e909f',
      '45b95e15235d6f45a6b19cbcb0294ba9',
    ],
    server: [
      '82db637861d55e1d011f19ea71d5d2a7',
      'dd13c276499c0249d3310652',
      'edf6d05c83121201b436e16877593c3a',
    ],
    packet: 'd76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071bf03',
    tag: 'a18b2faa745b6fe189cf772a9f84cbfc',
  },
} as const;
const RFC_CRYPTO =
  '060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c000004130113' +
  '02010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d00170018001000070005' +
  '04616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce1' +
  '5d43e994ec74d748002b0003020304000d0010000e0403050306030203080408050806002d00020101001c0002400100' +
  '3900320408ffffffffffffffff05048000ffff07048000ffff0801100104800075300901100f088394c8f03e51570806' +
  '048000ffff';
const RFC_PAYLOAD_BYTES = 1162;

describe('the appendices of the RFCs', () => {
  for (const version of VERSIONS) {
    test(`version ${version}: keys, and a packet that is made and read`, () => {
      const { packet, tag, ...sides } = RFC[version];
      for (const side of ['client', 'server'] as const) {
        const { key, iv, headerKey } = initialKeys(version, DESTINATION, side);
        assert.deepEqual([key, iv, headerKey].map(hex), sides[side]);
      }
      const payload = new Uint8Array(RFC_PAYLOAD_BYTES);
      payload.set(Buffer.from(RFC_CRYPTO, 'hex'));
      const made = sealInitial({ version, number: 2, payload });
      assert.equal(made.length, 1200);
      assert.ok(hex(made).startsWith(packet) && hex(made).endsWith(tag), 'the tag covers all between');
      assert.deepEqual(read(made), { kind: 'server_name', serverName: 'example.com' });
    });
  }
});

describe('a hello', () => {
  test('of Chromium: its first datagram never suffices, any order does, and so do mixed repeats', () => {
    const flights = REAL_FLIGHTS.filter(({ client }) => client.startsWith('chromium'));
    assert.equal(flights.length, 2);
    for (const { client, datagrams } of flights) {
      for (const datagram of datagrams) assert.equal(kindOf(datagram), 'need_more', client);
      for (let at = 0; at < datagrams.length; at += 2) {
        const [one, other] = datagrams.slice(at, at + 2) as [Uint8Array, Uint8Array];
        assert.deepEqual(read(one, other), FOUND, client);
        assert.deepEqual(read(other, one), FOUND, client);
        assert.deepEqual(read(one, one, datagrams.at(-1)!, other), FOUND, client);
      }
    }
  });

  test('of ngtcp2: each datagram suffices', () => {
    const { datagrams } = REAL_FLIGHTS.find(({ client }) => client.startsWith('ngtcp2'))!;
    assert.equal(datagrams.length, 2);
    for (const datagram of datagrams) assert.deepEqual(read(datagram), FOUND);
  });

  test('cut anywhere, shuffled, with repeats: found when the last piece is there, and not before', () => {
    const message = fc.constantFrom(HELLO, helloMessage({ serverName: NAME, keyShareBytes: 1216 }));
    const cuts = fc.array(fc.nat(2000), { maxLength: 20 });
    fc.assert(
      fc.property(message, cuts, fc.constantFrom(...VERSIONS), fc.nat(), (hello, places, version, seed) => {
        const random = randomFrom(seed);
        const pieces = cutAt(hello, places);
        const [last, ...others] = shuffled(pieces, random);
        const repeated = shuffled([...others, ...others.slice(random(others.length + 1))], random);
        const reader = new InitialReader();
        for (const datagram of inDatagrams(repeated, { version }, random))
          assert.equal(reader.push(datagram).kind, 'need_more');
        assert.deepEqual(reader.push(initialDatagram([last!], { version, number: 99 })), FOUND);
        assert.deepEqual(reader.push(initialDatagram([], { version, number: 100 })), FOUND, 'for good');
      }),
      { numRuns: 150 },
    );
  });

  test('with numbers of every length, tokens, and ids of every length', () => {
    const frames = [cryptoFrame(0, HELLO)];
    for (const numberBytes of [1, 2, 3, 4] as const)
      assert.deepEqual(
        read(initialDatagram(frames, { numberBytes, number: 2 ** (8 * numberBytes) - 1 })),
        FOUND,
      );
    for (const bytes of [1, 63, 64, 300])
      assert.deepEqual(read(initialDatagram(frames, { token: new Uint8Array(bytes).fill(5) })), FOUND);
    for (let bytes = MIN_FIRST_ID_BYTES; bytes <= MAX_ID_BYTES; bytes++) {
      const id = new Uint8Array(bytes).fill(bytes);
      assert.deepEqual(read(initialDatagram(frames, { destination: id, source: id })), FOUND);
    }
  });

  test('beside the frames that a first flight may have', () => {
    const ack = joined(Uint8Array.of(2), varint(70), varint(3), varint(1), varint(1), varint(2), varint(4));
    const ecn = joined(
      Uint8Array.of(3),
      varint(9),
      varint(0),
      varint(0),
      varint(0),
      varint(1),
      varint(2),
      varint(3),
    );
    const close = joined(Uint8Array.of(0x1c), varint(10), varint(6), varint(3), Buffer.from('bye'));
    const frames = [ack, Uint8Array.of(1), cryptoFrame(0, HELLO.subarray(0, 9)), ecn, close];
    assert.deepEqual(read(initialDatagram([...frames, cryptoFrame(9, HELLO.subarray(9))])), FOUND);
  });

  test('without a server name', () => {
    assert.equal(kindOf(initialDatagram([cryptoFrame(0, helloMessage())])), 'no_server_name');
  });

  test('as large as the limit', () => {
    const base = helloMessage({ serverName: NAME, keyShareBytes: 0 }).length;
    const large = helloMessage({ serverName: NAME, keyShareBytes: MAX_QUIC_HELLO_BYTES - base });
    const cuts = Array.from({ length: 40 }, (_, index) => index * 800);
    const flight = (hello: Uint8Array) => inDatagrams(cutAt(hello, cuts), {}, randomFrom(1));
    assert.deepEqual(read(...flight(large)), FOUND);
    const larger = helloMessage({ serverName: NAME, keyShareBytes: MAX_QUIC_HELLO_BYTES - base + 1 });
    assert.equal(kindOf(...flight(larger)), 'malformed');
  });
});

describe('datagrams of several packets', () => {
  const [one, other] = [HELLO.subarray(0, 60), HELLO.subarray(60)];
  const first = sealInitial({ payload: joined(cryptoFrame(0, one), new Uint8Array(600)) });
  const second = sealInitial({ number: 1, payload: joined(cryptoFrame(60, other), new Uint8Array(600)) });
  const early = joined(
    longHead(0xd0, VERSION_1, DESTINATION, new Uint8Array(0)),
    varint(40),
    new Uint8Array(40),
  );

  test('two Initial packets, and what comes early before them', () => {
    assert.deepEqual(read(joined(first, second)), FOUND);
    assert.deepEqual(read(joined(early, second, first)), FOUND);
    assert.equal(kindOf(padded(early)), 'unread');
  });

  test('what follows is not judged: a packet with a short header, junk, another version, another id', () => {
    const foreign = sealInitial({ destination: new Uint8Array(8).fill(1), payload: new Uint8Array(500) });
    const otherVersion = sealInitial({ version: VERSION_2, payload: new Uint8Array(500) });
    for (const tail of [Uint8Array.of(0x41), new Uint8Array(30).fill(0xff), foreign, otherVersion])
      assert.equal(kindOf(padded(joined(first, tail)), padded(joined(second, tail))), 'server_name');
    assert.equal(kindOf(joined(first, foreign, second)), 'need_more', 'all packets are of one connection');
  });

  test('so many and no more', () => {
    const small = sealInitial({ payload: new Uint8Array(8) });
    assert.deepEqual(
      read(joined(...Array<Uint8Array>(MAX_PACKETS_PER_DATAGRAM - 2).fill(small), first, second)),
      FOUND,
    );
    assert.equal(
      kindOf(joined(...Array<Uint8Array>(MAX_PACKETS_PER_DATAGRAM - 1).fill(small), first, second)),
      'need_more',
    );
  });
});

describe('of another connection', () => {
  const [one, other] = [cryptoFrame(0, HELLO.subarray(0, 60)), cryptoFrame(60, HELLO.subarray(60))];
  test('another id or version counts no more once a packet was read', () => {
    const begun = initialDatagram([one]);
    for (const shape of [{ destination: new Uint8Array(8).fill(3) }, { version: VERSION_2 as Version }]) {
      assert.equal(kindOf(begun, initialDatagram([other], { ...shape, number: 1 })), 'need_more');
    }
    assert.deepEqual(read(begun, initialDatagram([other], { number: 1 })), FOUND);
  });

  test('what does not authenticate leaves no trace, and the next may', () => {
    const good = initialDatagram([one, other]);
    const bad = Uint8Array.from(good);
    bad[700]! ^= 1;
    const strangers = [
      bad,
      initialDatagram([one, other], { side: 'server' }),
      initialDatagram([one, other], { keysOf: new Uint8Array(8) }),
      initialDatagram([one, other], { destination: new Uint8Array(7) }),
      good.subarray(0, 1199),
      padded(longHead(0xc0, 0xff00001d, DESTINATION, DESTINATION)),
      padded(longHead(0xc0, 0, DESTINATION, DESTINATION)),
      new Uint8Array(1200),
      new Uint8Array(1200).fill(0xff),
    ];
    for (const [index, stranger] of strangers.entries()) {
      assert.equal(kindOf(stranger), 'unread', `${index}`);
      assert.deepEqual(read(stranger, good), FOUND, `${index}`);
    }
  });
});

describe('malformed', () => {
  const cases: Record<string, readonly Uint8Array[]> = {
    'a frame that an Initial packet may not have': [Uint8Array.of(8, 0, 0)],
    'a frame type of eight bytes': [longVarint(6n << 40n)],
    'another handshake message': [cryptoFrame(0, Uint8Array.of(2, 0, 0, 1, 0))],
    'a declared length beyond the limit': [cryptoFrame(0, Uint8Array.of(1, 0, 0x40, 0))],
    'a piece beyond the limit': [cryptoFrame(MAX_QUIC_HELLO_BYTES, Uint8Array.of(1))],
    'a piece at the end of all numbers': [joined(Uint8Array.of(6), longVarint((1n << 62n) - 1n), varint(1))],
    'a piece longer than the packet': [joined(Uint8Array.of(6), varint(0), varint(5000))],
    'an ACK of more ranges than there are': [joined(Uint8Array.of(2, 1, 0), longVarint((1n << 62n) - 1n))],
    'a close whose reason does not fit': [joined(Uint8Array.of(0x1c, 0, 0), varint(16_000))],
    'a hello that ends early': [cryptoFrame(0, Uint8Array.of(1, 0, 0, 3, 3, 3, 0))],
    'two server_name extensions': [
      cryptoFrame(0, helloMessage({ serverName: NAME, extensions: [Uint8Array.of(0, 0, 0, 0)] })),
    ],
    'more holes than a client leaves': Array.from({ length: MAX_PIECES + 1 }, (_, index) =>
      cryptoFrame(1 + index * 2, Uint8Array.of(0)),
    ),
  };
  for (const [what, frames] of Object.entries(cases))
    test(what, () => assert.equal(kindOf(initialDatagram(frames)), 'malformed'));

  test('holes up to the limit, and Initial packets up to theirs, are not', () => {
    const holes = Array.from({ length: MAX_PIECES }, (_, index) =>
      cryptoFrame(1 + index * 2, Uint8Array.of(0)),
    );
    assert.equal(kindOf(initialDatagram(holes)), 'need_more');
    const reader = new InitialReader();
    for (let number = 0; number < MAX_INITIALS; number++)
      assert.equal(reader.push(initialDatagram([], { number })).kind, 'need_more');
    assert.equal(reader.push(initialDatagram([], { number: MAX_INITIALS })).kind, 'malformed');
  });
});

describe('properties', () => {
  const damage = fc.array(fc.tuple(fc.nat(1300), fc.nat(255)), { maxLength: 4 });
  const anyDatagram = fc.oneof(
    fc.uint8Array({ maxLength: 1300 }),
    fc
      .tuple(fc.constantFrom(...REAL_FLIGHTS.flatMap(({ datagrams }) => datagrams)), damage)
      .map(([wire, changes]) => {
        const damaged = Uint8Array.from(wire);
        for (const [at, value] of changes) damaged[at % 60] = value;
        return damaged;
      }),
  );

  test('never throws, and reads nothing beyond the bytes that came', () => {
    fc.assert(
      fc.property(
        anyDatagram,
        fc.nat(),
        fc.uint8Array({ minLength: 1, maxLength: 64 }),
        (wire, at, after) => {
          const length = at % (wire.length + 1);
          const inside = joined(wire.subarray(0, length), after).subarray(0, length);
          assert.deepEqual(readPacket(inside), readPacket(wire.slice(0, length)));
          assert.deepEqual(read(inside, wire), read(wire.slice(0, length), wire));
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('any payload, sealed as it must be, gets an answer that more of the same does not change', () => {
    const frame = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc
        .tuple(fc.nat(HELLO.length), fc.nat(80))
        .map(([from, length]) => cryptoFrame(from, HELLO.subarray(from, from + length))),
    );
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), (frames) => {
        const datagram = initialDatagram(frames);
        const answer = read(datagram);
        assert.notEqual(answer.kind, 'unread');
        if (answer.kind !== 'need_more') assert.deepEqual(read(datagram, datagram), answer);
      }),
      { numRuns: 500 },
    );
  });
});
