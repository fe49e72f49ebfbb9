import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { initialDatagram } from '../quic/testing/initials.ts';
import { Datagrams } from './native/testing/datagrams.ts';
import {
  CLIENT,
  hello,
  INSTANCE,
  id,
  instanceInitial,
  openQuicWorld,
  short,
} from './native/testing/quic-world.ts';
import type { AccessRecord } from './port.ts';
import { NAME_A, NAME_UNKNOWN, until } from './testing/suite/world.ts';

/** By keys of another id: it does not authenticate. */
const junk = initialDatagram([], { destination: id(3), source: CLIENT, keysOf: id(200) });

describe('the access log of QUIC', () => {
  test('tells of each connection, and of nothing that authenticates nothing', async () => {
    const records: AccessRecord[] = [];
    await using world = await openQuicWorld(
      {},
      { access: { every: 1, tell: (record) => records.push(record) } },
    );
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    client.send(junk, https, '127.0.0.1');
    await until(() => world.count('stray') === 1);
    client.send(hello(NAME_UNKNOWN), https, '127.0.0.1');
    await until(() => records.length === 1);
    const startedMs = Date.now();
    client.send(hello(NAME_A, id(4)), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    const answers = [instanceInitial(id(4)), short(CLIENT)];
    for (const answer of answers) world.instanceA.send(answer, from.port, from.address);
    await client.take(3);
    const data = short(INSTANCE);
    client.send(data, https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 2);
    await world.instanceA[Symbol.asyncDispose]();
    // Nobody is there any more: the system says so, and the connection ends.
    await until(() => {
      client.send(data, https, '127.0.0.1');
      return records.length === 2;
    });
    const [refused, served] = records;
    const common = { protocol: 'quic', clientAddress: '127.0.0.1', clientPort: client.port };
    assert.deepEqual(
      { ...refused, startedUnixMs: 0, durationMs: 0 },
      {
        ...common,
        startedUnixMs: 0,
        durationMs: 0,
        hostname: null,
        outcome: 'unknown_name',
        bytesToInstance: 0,
        bytesToClient: 0,
      },
    );
    assert.ok(served!.startedUnixMs >= startedMs && served!.durationMs <= Date.now() - startedMs + 1);
    assert.ok(served!.bytesToInstance >= hello(NAME_A).length + data.length);
    assert.deepEqual(
      { ...served, startedUnixMs: 0, durationMs: 0, bytesToInstance: 0 },
      {
        ...common,
        ...{ startedUnixMs: 0, durationMs: 0, hostname: NAME_A, outcome: 'forwarded', bytesToInstance: 0 },
        bytesToClient: answers.reduce((sum, { length }) => sum + length, 0),
      },
    );
  });
});
