import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { TEST_CACHE } from '../dataplane/native/testing/built.ts';
import { ClientHelloReader, MAX_CLIENT_HELLO_BYTES } from './client-hello.ts';
import { mutate, randomFrom, readCut } from './testing/fuzz.ts';
import { helloMessage, helloWire, inRecords } from './testing/hello.ts';
import { buildNativeReader, type CutHello, readNatively } from './testing/native-reader.ts';

const path = await buildNativeReader(TEST_CACHE);

/** What real clients send: curl, OpenSSL, GnuTLS, Go, Chromium, ... */
const REAL = Object.entries(
  JSON.parse(readFileSync(new URL('testing/real-hellos.json', import.meta.url), 'utf8')) as Record<
    string,
    string
  >,
).map(([client, wire]) => ({ client, wire: new Uint8Array(Buffer.from(wire, 'base64')) }));
const NAME = 'farm-manage-desk-seek.skerry.localhost';

async function compare(hellos: readonly CutHello[]): Promise<void> {
  const theirs = await readNatively(path, hellos);
  for (const [index, hello] of hellos.entries()) {
    const ours = readCut(hello);
    if (JSON.stringify(ours) !== JSON.stringify(theirs[index]))
      assert.deepEqual(theirs[index], ours, Buffer.from(hello.wire).toString('hex'));
  }
}

describe('both readers of ClientHellos', () => {
  test('find the name in what real clients send', async () => {
    for (const { client, wire } of REAL) {
      const answer = new ClientHelloReader().push(wire);
      if (client.endsWith('no-name')) assert.equal(answer.kind, 'no_server_name', client);
      else
        assert.ok(answer.kind === 'server_name' && [NAME, 'localhost'].includes(answer.serverName), client);
    }
    await compare(REAL.map(({ wire }) => ({ wire, ends: [wire.length] })));
  });

  test('agree on every cut of real hellos, on records of every size, and at the limits', async () => {
    const everyCut = REAL.flatMap(({ wire }) =>
      Array.from(wire, (_, cut) => ({ wire, ends: [cut, wire.length] })),
    );
    const message = helloMessage({ serverName: NAME });
    const bySize = Array.from(message, (_, size) => inRecords(message, size + 1));
    const base = helloMessage({ serverName: NAME, keyShareBytes: 0 }).length;
    const large = [-1, 0, 1].map((more) =>
      helloWire({ serverName: NAME, keyShareBytes: MAX_CLIENT_HELLO_BYTES - base + more }),
    );
    const manyRecords = inRecords(helloMessage({ serverName: NAME, keyShareBytes: 20_000 }), 1);
    const whole = [...bySize, ...large, manyRecords].map((wire) => ({ wire, ends: [wire.length] }));
    const byByte = REAL.slice(0, 3).map(({ wire }) => ({ wire, ends: Array.from(wire, (_, i) => i + 1) }));
    await compare([...everyCut, ...whole, ...byByte]);
  });

  test('agree on 20,000 damaged ones', async () => {
    const random = randomFrom(20260401);
    const corpus = REAL.map(({ wire }) => wire);
    await compare(Array.from({ length: 20_000 }, () => mutate(random, corpus)));
  });
});
