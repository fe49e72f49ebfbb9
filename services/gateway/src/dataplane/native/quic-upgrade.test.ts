import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { cryptoFrame, initialDatagram } from '../../quic/testing/initials.ts';
import { ADDRESS_A, ADDRESS_B, NAME_A, NAME_B, until } from '../testing/suite/world.ts';
import { Datagrams } from './testing/datagrams.ts';
import {
  CLIENT,
  createQuicPlane,
  hello,
  INSTANCE,
  id,
  instanceInitial,
  openQuicWorld,
  short,
  whileItStands,
} from './testing/quic-world.ts';

const directory = await mkdtemp(join(tmpdir(), 'skerry-quic-'));
after(() => rm(directory, { recursive: true, force: true }));

describe('a gateway that replaces another', () => {
  test('takes over its sockets and its flows: a connection goes on', async () => {
    const handover = {
      ...{ path: join(directory, 'listeners.sock'), replace: false, drainMs: 600_000, onReplaced: () => {} },
    };
    await using world = await openQuicWorld({}, { handover });
    const { http: httpPort, https: httpsPort } = world.ports;
    await using proven = await Datagrams.open('127.0.0.1');
    await using unproven = await Datagrams.open('::1');
    const large = Array.from({ length: 400 }, () => new Uint8Array(60_000));
    await whileItStands(world, () => proven.sendAll(large, httpsPort, '127.0.0.1'));
    proven.send(hello(NAME_A), httpsPort, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    assert.ok(world.native.stats().quic.figures.quicDroppedToInstances > 0);
    const { from: provenFrom } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(9)), provenFrom.port, provenFrom.address);
    await proven.take(1);
    proven.send(short(INSTANCE), httpsPort, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 2);
    unproven.send(hello(NAME_B, id(11)), httpsPort, '::1');
    await until(() => world.instanceB.heard.length === 1);
    const { bytes, from: unprovenFrom } = world.instanceB.heard[0]!;
    world.instanceB.send(instanceInitial(id(11)), unprovenFrom.port, unprovenFrom.address);
    await unproven.take(1);
    // Half a hello: its client says it again.
    unproven.send(
      initialDatagram([cryptoFrame(5, new Uint8Array(9))], { destination: id(12), source: CLIENT }),
      httpsPort,
      '::1',
    );
    await until(() => world.native.stats().quic.figures.quicOpen === 3);

    await using second = createQuicPlane(
      // In another order.
      { ...world.again, hosts: world.again.hosts.toReversed(), httpPort, httpsPort },
      { handover: { ...handover, replace: true } },
    );
    // One name leads elsewhere by now, the other nowhere: what is open stays where it is.
    second.replaceTable([{ hostname: NAME_A, ipv6: ADDRESS_B }]);
    await second.listen();
    await until(() => world.native.stats().quic.figures.quicOpen === 0);
    await until(() => world.native.connectionBytes === 0);
    assert.equal(second.stats().quic.figures.quicOpen, 2);
    proven.send(short(INSTANCE, 70), httpsPort, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 3);
    const { from: stillFrom, bytes: heard } = world.instanceA.heard[2]!;
    assert.deepEqual([stillFrom.port, heard], [provenFrom.port, short(INSTANCE, 70)]);
    for (let number = 0; number < 9; number++) {
      world.instanceA.send(short(CLIENT, 1100), provenFrom.port, provenFrom.address);
      assert.deepEqual(await proven.take(1), [short(CLIENT, 1100)]);
    }
    // Who is not proven stays so, and what it sent and was sent counts on.
    for (let number = 0; number < 9; number++)
      world.instanceB.send(instanceInitial(id(11)), unprovenFrom.port, unprovenFrom.address);
    const { length } = instanceInitial(id(11));
    const held = () => second.stats().quic.figures.quicHeldBack;
    const most = Math.floor((3 * bytes.length) / length) - 1;
    await until(() => held() === (9 - most) * length);
    assert.equal((await unproven.take(most)).length, most);
    // Those that come now are led by the table of now.
    for (let number = 20; number < 30; number++) {
      proven.send(hello(NAME_A, id(number)), httpsPort, '127.0.0.1');
      await until(() => world.instanceB.heard.length === number - 18);
    }
    assert.equal(second.stats().quic.figures.quicDroppedToInstances, 0, 'the first has counted them');
  });

  test('one without QUIC takes none', async () => {
    const handover = {
      ...{ path: join(directory, 'other.sock'), replace: false, drainMs: 600_000, onReplaced: () => {} },
    };
    await using world = await openQuicWorld({}, { handover });
    const { http: httpPort, https: httpsPort } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    client.send(hello(NAME_A), httpsPort, '127.0.0.1');
    await world.instanceA.take(1);
    await using second = createQuicPlane(
      { ...world.again, httpPort, httpsPort },
      { handover: { ...handover, replace: true }, quic: 'no' },
    );
    second.replaceTable([{ hostname: NAME_A, ipv6: ADDRESS_A }]);
    await second.listen();
    await until(() => world.native.stats().quic.figures.quicOpen === 0);
    assert.equal(second.stats().quic.figures.quicOpen, 0);
  });
});
