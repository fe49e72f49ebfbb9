import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cryptoFrame, initialDatagram } from '../../quic/testing/initials.ts';
import { helloMessage } from '../../tls/testing/hello.ts';
import { NAME_A, until } from '../testing/suite/world.ts';
import { Datagrams } from './testing/datagrams.ts';
import { CLIENT, hello, INSTANCE, id, instanceInitial, openQuicWorld, short } from './testing/quic-world.ts';
import { runOwn } from './testing/run-own.ts';

/** Flows whose hello is not whole. */
const MOST_UNDECIDED = 1024;
/** Of one client that has a turn at a time. */
const AT_ONCE = 32;

const idOf = (number: number) => new Uint8Array(new Float64Array([number]).buffer);

describe('strangers and QUIC', () => {
  test('an instance that gives all flows one id does not have the gateway stand still when they end', async () => {
    const { stdout } = await runOwn('quic-ids', ['quic_index.c', 'quic_flow.c', 'packet.c']);
    assert.equal(stdout, 'all gone\n');
  });

  test('who begins many hellos ends its own, and not that of another client', async () => {
    await using world = await openQuicWorld();
    const { https } = world.ports;
    await using slow = await Datagrams.open('127.0.0.3');
    const message = helloMessage({ serverName: NAME_A });
    const part = (from: number, to: number, number: number) =>
      initialDatagram([cryptoFrame(from, message.subarray(from, to))], {
        ...{ destination: id(9), source: CLIENT, number },
      });
    const open = () => world.native.stats().quic.figures.quicOpen;
    slow.send(part(0, 50, 0), https, '127.0.0.1');
    await until(() => open() === 1);
    await using one = await Datagrams.open('127.0.0.1');
    await using two = await Datagrams.open('127.0.0.1');
    const crowd = await Promise.all(Array.from({ length: 18 }, () => Datagrams.open('127.0.0.1')));
    let begun = 0;
    for (const client of [one, two, ...crowd])
      for (let round = 0; round < 2 && begun < MOST_UNDECIDED + 8; round++) {
        const halves = Array.from({ length: Math.min(AT_ONCE, MOST_UNDECIDED + 8 - begun) }, () =>
          initialDatagram([cryptoFrame(5, new Uint8Array(9))], {
            destination: idOf(begun++),
            source: CLIENT,
          }),
        );
        await client.sendAll(halves, https, '127.0.0.1');
        await until(() => open() + world.count('crowded_out') === begun + 1);
      }
    assert.equal(world.count('crowded_out'), 9);
    slow.send(part(50, message.length, 1), https, '127.0.0.1');
    assert.equal((await world.instanceA.take(2)).length, 2, 'the hello is whole');
    for (const client of crowd) await client[Symbol.asyncDispose]();
  });

  test('who sends first packets in the name of a client shuts it out neither from new flows nor from those that are proven', async () => {
    await using world = await openQuicWorld({ maxPerClient: 3 });
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    await using others = await Datagrams.open('127.0.0.1');
    const begin = async (from: Datagrams, number: number) => {
      from.send(hello(NAME_A, id(number)), https, '127.0.0.1');
      await until(() => world.instanceA.heard.length === 1);
      const { from: flow } = world.instanceA.heard.pop()!;
      world.instanceA.send(instanceInitial(id(number), id(number + 100)), flow.port, flow.address);
      await from.take(1);
    };
    const prove = async (number: number) => {
      client.send(short(id(number + 100)), https, '127.0.0.1');
      assert.deepEqual(await world.instanceA.take(1), [short(id(number + 100))]);
    };
    await begin(client, 9);
    await prove(9);
    for (let number = 20; number < 26; number++) await begin(others, number);
    const open = () => world.native.stats().quic.figures.quicOpen;
    assert.deepEqual([open(), world.count('client_limit')], [3, 0]);
    await prove(9);
    for (const number of [30, 31]) {
      await begin(client, number);
      await prove(number);
    }
    others.send(hello(NAME_A, id(40)), https, '127.0.0.1');
    await until(() => world.count('client_limit') === 1);
    for (const number of [9, 30, 31]) await prove(number);
  });

  test('a crowd of newcomers ends nobody who moved', async () => {
    await using world = await openQuicWorld({ maxUndecided: 4 });
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    await using elsewhere = await Datagrams.open('127.0.0.3');
    const answerNext = async (number: number) => {
      await until(() => world.instanceA.heard.length === 1);
      const { from } = world.instanceA.heard.pop()!;
      world.instanceA.send(instanceInitial(id(number), id(number + 100)), from.port, from.address);
    };
    client.send(hello(NAME_A), https, '127.0.0.1');
    await answerNext(9);
    await client.take(1);
    client.send(short(id(109)), https, '127.0.0.1');
    await world.instanceA.take(1);
    elsewhere.send(short(id(109)), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from: moved } = world.instanceA.heard.pop()!;
    assert.equal(world.count('moved'), 1);
    for (let number = 40; number < 48; number++) {
      client.send(hello(NAME_A, id(number)), https, '127.0.0.1');
      await answerNext(number);
      await client.take(1);
    }
    world.instanceA.send(short(INSTANCE), moved.port, moved.address);
    assert.deepEqual(await elsewhere.take(1), [short(INSTANCE)]);
    elsewhere.send(short(id(109), 70), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    assert.equal(world.instanceA.heard[0]!.from.port, moved.port, 'it goes on');
  });
});
