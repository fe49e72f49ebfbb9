import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  ClientHelloReader,
  type HelloAnswer,
  MAX_CLIENT_HELLO_BYTES,
  MAX_HELLO_WIRE_BYTES,
} from './client-hello.ts';
import {
  extension,
  helloMessage,
  helloWire,
  inRecords,
  joined,
  record,
  serverNameExtension,
} from './testing/hello.ts';

const NAME = 'farm-manage-desk-seek.skerry.localhost';
const FOUND: HelloAnswer = { kind: 'server_name', serverName: NAME };

function read(...chunks: Uint8Array[]): HelloAnswer {
  const reader = new ClientHelloReader();
  let answer: HelloAnswer = { kind: 'need_more' };
  for (const chunk of chunks) answer = reader.push(chunk);
  assert.deepEqual(Buffer.from(reader.bytes), Buffer.concat(chunks), 'nothing is consumed');
  return answer;
}

const byteByByte = (wire: Uint8Array) => read(...Array.from(wire, (byte) => Uint8Array.of(byte)));
const kindOf = (...chunks: Uint8Array[]) => read(...chunks).kind;

describe('a ClientHello with a server name', () => {
  test('split in two at every byte', () => {
    const wire = helloWire({ serverName: NAME });
    for (let cut = 1; cut < wire.length; cut++) {
      assert.equal(kindOf(wire.subarray(0, cut)), 'need_more', `first ${cut} bytes`);
      assert.deepEqual(read(wire.subarray(0, cut), wire.subarray(cut)), FOUND, `cut at ${cut}`);
    }
    assert.deepEqual(byteByByte(wire), FOUND);
  });

  test('in records of every size', () => {
    const message = helloMessage({ serverName: NAME });
    for (let size = 1; size <= message.length; size++) {
      const wire = inRecords(message, size);
      assert.deepEqual(read(wire), FOUND, `records of ${size}`);
      assert.deepEqual(byteByByte(wire), FOUND, `records of ${size}, byte by byte`);
    }
  });

  test('of post-quantum size, and as large as the limit allows', () => {
    assert.deepEqual(read(helloWire({ serverName: NAME, keyShareBytes: 1216 })), FOUND);
    assert.deepEqual(read(helloWire({ serverName: NAME, keyShareBytes: 17_000 })), FOUND);
    const base = helloMessage({ serverName: NAME, keyShareBytes: 0 }).length;
    const largest = { serverName: NAME, keyShareBytes: MAX_CLIENT_HELLO_BYTES - base };
    assert.deepEqual(read(helloWire(largest)), FOUND);
    assert.equal(kindOf(helloWire({ ...largest, keyShareBytes: largest.keyShareBytes + 1 })), 'malformed');
  });

  test('in upper case, with a trailing dot, without a session id, followed by more', () => {
    assert.deepEqual(read(helloWire({ serverName: `${NAME.toUpperCase()}.` })), FOUND);
    assert.deepEqual(read(helloWire({ serverName: NAME, sessionIdBytes: 0 })), FOUND);
    assert.deepEqual(read(joined(helloWire({ serverName: NAME }), Uint8Array.of(0xff, 0xff, 0xff))), FOUND);
  });

  test('in the open, around an encrypted hello with another name (ECH): the outer name counts', () => {
    // Outer hello, key-derivation and cipher numbers, configuration, no key, what is encrypted (RFC 9849 section 5).
    const sealed = helloMessage({ serverName: 'inner.example' });
    const length = Uint8Array.of(sealed.length >> 8, sealed.length & 0xff);
    const encrypted = extension(0xfe0d, joined(Uint8Array.of(0, 0, 1, 0, 1, 7, 0, 0), length, sealed));
    assert.deepEqual(read(helloWire({ serverName: NAME, extensions: [encrypted] })), FOUND);
    assert.equal(kindOf(helloWire({ extensions: [encrypted] })), 'no_server_name');
  });

  test('beside a name of a type that nobody defined', () => {
    const list = joined(Uint8Array.of(9, 0, 1, 0x41, 0, 0, NAME.length), Buffer.from(NAME));
    const named = extension(0, joined(Uint8Array.of(0, list.length), list));
    assert.deepEqual(read(helloWire({ extensions: [named] })), FOUND);
  });
});

test('a ClientHello without a server name', () => {
  assert.equal(kindOf(helloWire()), 'no_server_name');
  const bare = joined(Uint8Array.of(3, 1), new Uint8Array(32), Uint8Array.of(0, 0, 2, 0, 47, 1, 0));
  assert.equal(
    kindOf(record(joined(Uint8Array.of(1, 0, 0, bare.length), bare))),
    'no_server_name',
    'no extensions',
  );
});

test('what is not TLS is known by its first bytes', () => {
  assert.equal(kindOf(Buffer.from('G')), 'not_tls');
  assert.equal(kindOf(Buffer.from('GET / HTTP/1.1\r\n')), 'not_tls');
  assert.equal(kindOf(Buffer.from('SSH-2.0-x\r\n')), 'not_tls');
  assert.equal(kindOf(Uint8Array.of(22, 2)), 'not_tls');
  assert.equal(kindOf(Uint8Array.of(0x80, 0x2e, 1, 3, 1)), 'not_tls', 'an SSL 2.0 hello');
});

describe('malformed', () => {
  const cases: Record<string, Uint8Array> = {
    'an empty record': record(new Uint8Array(0)),
    'a record beyond 2^14 bytes': Uint8Array.of(22, 3, 1, 0x40, 1),
    'another handshake message': record(Uint8Array.of(2, 0, 0, 1, 0)),
    'another record in between': joined(
      record(helloMessage({ serverName: NAME }).subarray(0, 20)),
      record(Uint8Array.of(1, 0), 21),
    ),
    'a declared length beyond the limit': record(Uint8Array.of(1, 0xff, 0xff, 0xff)),
    'two host names': helloWire({ extensions: [serverNameExtension(NAME, NAME)] }),
    'two server_name extensions': helloWire({ serverName: NAME, extensions: [serverNameExtension('x.y')] }),
    'an empty name': helloWire({ serverName: '' }),
    'a dot alone': helloWire({ serverName: '.' }),
    'a name with a NUL': helloWire({ serverName: `${NAME}\0.example` }),
    'a name beyond ASCII': helloWire({ serverName: 'caf\xe9.example' }),
    'a name of 256 bytes': helloWire({ serverName: 'a'.repeat(256) }),
    'an empty list of names': helloWire({ extensions: [extension(0, Uint8Array.of(0, 0))] }),
    'an empty server_name extension': helloWire({ extensions: [extension(0, new Uint8Array(0))] }),
    'bytes after the list of names': helloWire({
      extensions: [extension(0, Uint8Array.of(0, 4, 0, 0, 1, 65, 0))],
    }),
    'a body that ends early': record(Uint8Array.of(1, 0, 0, 3, 3, 3, 0)),
  };
  for (const [what, wire] of Object.entries(cases)) {
    test(what, () => {
      assert.equal(kindOf(wire), 'malformed');
      assert.equal(byteByByte(wire).kind, 'malformed');
    });
  }

  test('more record headers than a hello may have', () => {
    const wire = inRecords(helloMessage({ serverName: NAME, keyShareBytes: 20_000 }), 1);
    assert.ok(wire.length > MAX_HELLO_WIRE_BYTES);
    assert.equal(kindOf(wire), 'malformed');
    assert.equal(kindOf(wire.subarray(0, MAX_HELLO_WIRE_BYTES - 1)), 'need_more');
    assert.equal(kindOf(wire.subarray(0, MAX_HELLO_WIRE_BYTES)), 'malformed');
  });
});

describe('properties', () => {
  const cuts = fc.array(fc.nat(4000), { maxLength: 12 });
  const pieces = (wire: Uint8Array, at: number[]) => {
    const places = [...new Set(at.map((place) => place % (wire.length + 1)))].sort((a, b) => a - b);
    return [...places, wire.length].map((end, index) => wire.subarray(places[index - 1] ?? 0, end));
  };
  /** Hellos with some bytes overwritten, so that the fuzz reaches every branch. */
  const damaged = fc
    .record({
      shape: fc.record({
        serverName: fc.option(fc.string({ maxLength: 60 }), { nil: undefined }),
        keyShareBytes: fc.nat(200),
        sessionIdBytes: fc.nat(32),
      }),
      recordSize: fc.integer({ min: 1, max: 500 }),
      damage: fc.array(fc.tuple(fc.nat(600), fc.nat(255)), { maxLength: 3 }),
      tail: fc.uint8Array({ maxLength: 40 }),
    })
    .map(({ shape, recordSize, damage, tail }) => {
      const wire = joined(inRecords(helloMessage(shape), recordSize), tail);
      for (const [at, value] of damage) wire[at % wire.length] = value;
      return wire;
    });
  const anyBytes = fc.oneof(fc.uint8Array({ maxLength: 700 }), damaged);

  test('never throws, and an answer does not depend on the cuts', () => {
    fc.assert(
      fc.property(anyBytes, cuts, (wire, at) => {
        assert.deepEqual(read(...pieces(wire, at)), read(wire));
      }),
      { numRuns: 2000 },
    );
  });

  test('an answer never changes with more bytes', () => {
    fc.assert(
      fc.property(anyBytes, fc.nat(), (wire, at) => {
        const early = read(wire.subarray(0, at % (wire.length + 1)));
        if (early.kind !== 'need_more') assert.deepEqual(read(wire), early);
      }),
      { numRuns: 2000 },
    );
  });

  test('nothing is read beyond the bytes that came', () => {
    // The same prefix inside two different larger buffers must read the same.
    fc.assert(
      fc.property(anyBytes, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 64 }), (wire, at, after) => {
        const length = at % (wire.length + 1);
        const inside = joined(wire.subarray(0, length), after).subarray(0, length);
        assert.deepEqual(read(inside), read(wire.slice(0, length)));
      }),
      { numRuns: 1000 },
    );
  });

  test('a built hello gives its name back in any cut', () => {
    const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/);
    const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.'));
    fc.assert(
      fc.property(name, fc.integer({ min: 1, max: 700 }), cuts, (serverName, size, at) => {
        const wire = inRecords(helloMessage({ serverName }), size);
        assert.deepEqual(read(...pieces(wire, at)), { kind: 'server_name', serverName });
      }),
    );
  });
});
