import assert from 'node:assert/strict';
import { test } from 'node:test';
import { helloWire } from '../../../tls/testing/hello.ts';
import type { AccessRecord, Refusal } from '../../port.ts';
import type { Subject } from '../subject.ts';
import { NAME_A, NAME_UNKNOWN, openClient, openWorld, readAll, readLeft, until } from './world.ts';

const HELLO = helloWire({ serverName: NAME_A });

export function tlsJournalSuite({ create }: Subject): void {
  test('the access log tells of each connection', async () => {
    const records: AccessRecord[] = [];
    await using world = await openWorld((options) =>
      create({ ...options, access: { every: 1, tell: (record) => records.push(record) } }),
    );
    world.tlsA.handle = (socket) => void socket.pipe(socket);
    const client = await openClient(world.ports.https);
    const { localPort } = client;
    client.end(HELLO);
    await readAll(client);
    await until(() => records.length === 1);
    const six = await openClient(world.ports.https, '::1');
    six.end('no TLS');
    await readLeft(six);
    six.destroy();
    await until(() => records.length === 2);
    const [one, two] = records;
    assert.deepEqual(
      { ...one, startedUnixMs: 0, durationMs: 0 },
      {
        protocol: 'tls',
        startedUnixMs: 0,
        durationMs: 0,
        clientAddress: '127.0.0.1',
        clientPort: localPort,
        hostname: NAME_A,
        outcome: 'relayed',
        bytesToInstance: HELLO.length,
        bytesToClient: HELLO.length,
      },
    );
    assert.deepEqual([two!.clientAddress, two!.hostname, two!.outcome], ['::1', null, 'not_tls']);
  });

  test('whoever is refused is told of by network and reason, without an access log', async () => {
    const told: Refusal[] = [];
    await using world = await openWorld((options) =>
      create({ ...options, onRefused: (refusal) => told.push(refusal) }),
    );
    world.tlsA.handle = (socket) => void socket.end();
    const { https } = world.ports;
    for (const [from, bytes] of [
      ['127.9.9.1', helloWire({ serverName: NAME_UNKNOWN })],
      ['127.9.9.2', Buffer.from('no TLS')],
      // Served: nobody is told of that.
      ['127.9.9.3', HELLO],
    ] as const) {
      const client = await openClient(https, '127.0.0.1', from);
      client.write(bytes);
      await readLeft(client);
    }
    await until(() => told.length === 2);
    const one = { network: '127.9.9.0/24', count: 1, protocol: 'tls' };
    const byReason = told.toSorted((refusal, other) => refusal.reason.localeCompare(other.reason));
    assert.deepEqual(byReason, [
      { ...one, reason: 'not_tls' },
      { ...one, reason: 'unknown_name' },
    ]);
  });
}
