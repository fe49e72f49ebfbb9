import assert from 'node:assert/strict';
import { test } from 'node:test';
import { helloWire } from '../../../tls/testing/hello.ts';
import type { AccessRecord } from '../../port.ts';
import type { Subject } from '../subject.ts';
import { NAME_A, openClient, openWorld, readAll, readLeft, until } from './world.ts';

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
}
