import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Datagrams } from '../dataplane/native/testing/datagrams.ts';
import { readPacket } from './packet.ts';
import { probeQuic } from './probe.ts';
import { listVersions } from './testing/initials.ts';

/** Nothing waits so long. */
const PATIENT_MS = 100_000;

describe('whether QUIC is spoken at an address', () => {
  test('a server that lists its versions is there; who answers something else is not', async () => {
    await using server = await Datagrams.open('::1');
    const probed = probeQuic('::1', server.port, PATIENT_MS);
    const [asked] = await server.take(1);
    assert.equal(asked!.length, 1200);
    const packet = readPacket(asked!);
    assert.ok(packet.type === 'unknown_version' && (packet.version & 0x0f0f0f0f) === 0x0a0a0a0a, 'reserved');
    const answer = listVersions(asked!);
    const ofAnother = answer.with(6, answer[6]! ^ 1);
    // The last one ends the probe; the others have come by then.
    server.answer((again) => (server.heard.length > 2 ? listVersions(again) : ofAnother));
    assert.equal(await probed, null);
    assert.ok(server.heard.length > 2);
  });

  test('nobody there, and nobody who answers', async () => {
    const server = await Datagrams.open('::1');
    assert.equal(await probeQuic('::1', server.port, 50), 'connect_timeout');
    const { port } = server;
    await server[Symbol.asyncDispose]();
    assert.equal(await probeQuic('::1', port, PATIENT_MS), 'refused');
  });
});
