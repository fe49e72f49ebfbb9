import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cryptoFrame, initialDatagram, longHead, padded } from '../../quic/testing/initials.ts';
import { helloMessage } from '../../tls/testing/hello.ts';
import { NAME_A, until } from '../testing/suite/world.ts';
import { assertSame, Datagrams } from './testing/datagrams.ts';
import { CLIENT, hello, id, instanceInitial, openQuicWorld } from './testing/quic-world.ts';

const LONGEST_ID = new Uint8Array(255).fill(7);

describe('versions of QUIC that nobody knows', () => {
  test('the answer is smaller than what it answers, however long the ids are', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    const asked = padded(longHead(0xff, 0xfaceb00c, LONGEST_ID, LONGEST_ID));
    client.send(asked, world.ports.https, '127.0.0.1');
    const [answer] = await client.take(1);
    assert.ok(2 * answer!.length < asked.length, `${answer!.length} of ${asked.length}`);
  });

  test('a flood of them, each of another version, gets a share of answers, and leaves nothing', async () => {
    const share = 3;
    await using world = await openQuicWorld({ maxRefusals: 16 * share, refusalsPerSecond: 0 });
    const { https } = world.ports;
    await using client = await Datagrams.open('127.0.0.1');
    const flood = Array.from({ length: 40 }, (_, at) =>
      padded(longHead(0xc0, 0x0a0a0a0a + at, id(at), CLIENT)),
    );
    await client.sendAll(flood, https, '127.0.0.1');
    await until(() => world.count('unknown_version') === flood.length);
    // What comes next to the client comes behind all of them.
    client.send(hello(NAME_A), https, '127.0.0.1');
    await until(() => world.instanceA.heard.length === 1);
    const { from } = world.instanceA.heard[0]!;
    world.instanceA.send(instanceInitial(id(9)), from.port, from.address);
    assert.deepEqual((await client.take(share + 1))[share], instanceInitial(id(9)));
    assert.equal(world.native.stats().quic.figures.quicOpen, 1);
  });

  test('a list of versions is not answered with one: no two servers talk to each other without end', async () => {
    await using world = await openQuicWorld();
    await using client = await Datagrams.open('127.0.0.1');
    client.send(padded(longHead(0xc0, 0, id(3), CLIENT)), world.ports.https, '127.0.0.1');
    await until(() => world.count('stray') === 1);
    assert.equal(client.heard.length, 0);
  });
});

test('a token of Retry that is sent again from elsewhere is the instance’s to judge: it tells the two apart, and so do answers', async () => {
  await using world = await openQuicWorld();
  const { instanceA } = world;
  const { https } = world.ports;
  await using client = await Datagrams.open('127.0.0.1');
  await using thief = await Datagrams.open('127.0.0.3');
  const frames = [cryptoFrame(0, helloMessage({ serverName: NAME_A }))];
  const withToken = initialDatagram(frames, { source: CLIENT, token: new Uint8Array(64).fill(5) });
  client.send(withToken, https, '127.0.0.1');
  await until(() => instanceA.heard.length === 1);
  thief.send(withToken, https, '127.0.0.1');
  await until(() => instanceA.heard.length === 2);
  const [first, second] = instanceA.heard;
  assertSame([first!.bytes, second!.bytes], [withToken, withToken]);
  assert.notEqual(first!.from.port, second!.from.port);
  instanceA.send(instanceInitial(id(9)), first!.from.port, first!.from.address);
  assert.deepEqual(await client.take(1), [instanceInitial(id(9))]);
  assert.equal(thief.heard.length, 0);
});
