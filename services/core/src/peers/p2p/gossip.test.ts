import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import fc from 'fast-check';
import { coreConfig } from '../../config.ts';
import { acceptMessage } from '../../intake/accept.ts';
import { inlineVerifier } from '../../intake/verify/verifier.ts';
import { createTestCore, signers } from '../../testing/core.ts';
import { pickAddresses } from './addresses.ts';
import { placesOf } from './multiaddr.ts';
import { startGossip } from './start.ts';
import { connectLine, createTestGossip, type TestGossip } from './testing/setup.ts';

const { alice } = signers;
/** All points that a sender can have. */
const FORGIVEN_MS = 200 * 60_000;
const peerOf = ({ gossip }: TestGossip) => gossip.addresses[0]!.split('/p2p/').at(-1)!;
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: { n } } });

describe('gossip', () => {
  test('a port that is taken ends the start of the node', async (t) => {
    await using core = await createTestCore();
    const taken = createServer().listen(0, '127.0.0.1');
    t.after(() => taken.close());
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const environment = { SKERRY_CORE_P2P_PORT: `${port}`, SKERRY_CORE_HOST: '127.0.0.1' };
    const config = { ...readConfig(coreConfig, environment), dataDir: core.filesDir };
    const host = { signal: AbortSignal.timeout(240_000), log: createLogger('core', 'silent') };
    await assert.rejects(startGossip(core.rooms, config, host), { code: 'PORT_IN_USE', details: { port } });
  });

  test('behind a proxy gossip listens for itself, over IPv4 and IPv6, and others are told where', async (t) => {
    assert.deepEqual(placesOf('::', 4025), ['/ip4/0.0.0.0/tcp/4025', '/ip6/::/tcp/4025']);
    assert.deepEqual(
      ['localhost', '::1', '192.0.2.1', 'core.example'].flatMap((host) => placesOf(host, 1)),
      ['/ip4/127.0.0.1/tcp/1', '/ip6/::1/tcp/1', '/ip4/192.0.2.1/tcp/1', '/dns4/core.example/tcp/1'],
    );
    await using core = await createTestCore();
    await using other = await createTestCore();
    const config = readConfig(coreConfig, {
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_P2P_HOST: '::',
      SKERRY_CORE_P2P_ANNOUNCE: '/dns4/core.example/tcp/4025',
      SKERRY_CORE_PEERS: '/ip4/127.0.0.1/tcp/9/p2p/nobody',
    });
    assert.throws(() => readConfig(coreConfig, { SKERRY_CORE_P2P_ANNOUNCE: 'core.example:4025' }), {
      code: 'INVALID_CONFIG',
      message: /expected a multiaddr such as \/dns4\/HOST\/tcp\/PORT/,
    });
    const stop = new AbortController();
    const host = { signal: stop.signal, log: createLogger('core', 'silent') };
    await using door = await startGossip(core.rooms, { ...config, dataDir: core.filesDir }, host);
    const addresses = await until(
      'its addresses',
      () => door.addresses(),
      ({ length }) => length > 0,
    );
    assert.match(addresses.join(), /^\/dns4\/core\.example\/tcp\/4025\/p2p\/\w+$/);

    // A second process of the node has the same settings, and finds the port taken.
    const taken = createServer().listen(0, '127.0.0.1');
    t.after(() => taken.close());
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const more = { ...config, p2pHost: '127.0.0.1', p2pPort: port, dataDir: core.filesDir };
    await using second = await startGossip(other.rooms, more, host);
    // Before the doors close: they wait for what the signal ends.
    using _stopping = { [Symbol.dispose]: () => stop.abort() };
    const others = await until(
      'the addresses of the second process',
      () => second.addresses(),
      ({ length }) => length > 0,
    );
    assert.match(others.join(), /^\/ip4\/127\.0\.0\.1\/tcp\/\d+\/p2p\/\w+$/);
    assert.doesNotMatch(others.join(), new RegExp(`/tcp/${port}/`));
  });

  test('a message reaches a node two steps away; a forged one reaches nobody and costs its sender', async () => {
    await using stack = new AsyncDisposableStack();
    let nowMs = Date.now();
    const nodes = await Promise.all(
      [1, 2, 3].map((seed) => createTestGossip(stack, seed, { now: () => nowMs })),
    );
    const [first, middle, last] = nodes as [(typeof nodes)[0], (typeof nodes)[0], (typeof nodes)[0]];
    await connectLine(nodes);
    const { addresses } = first.gossip;
    // One in a list that others wrote: no node is there, and none can be.
    first.gossip.meet(['/ip4/999.1.1.1/tcp/1/p2p/nobody', ...middle.gossip.addresses]);
    const sent: string[] = [];
    const send = async (n: number) => {
      sent.push((await first.core.send(alice, note(n))).body.item_hash);
    };
    // Subscriptions travel after the connection: what comes before them is lost, and gossip promises nothing.
    await until(
      'the mesh',
      async () => {
        await send(sent.length);
        return last.core.rooms.sync.set.index.size;
      },
      (messages) => messages > 0,
      { everyMs: 100 },
    );
    await send(1_000);
    const statusOfLast = async () => (await last.core.get(`/messages/${sent.at(-1)}/status`)).status;
    await until('the last message', statusOfLast, (status) => status === 200);

    const accepted = acceptMessage(
      await inlineVerifier.verify(Buffer.from(signMessage(note(2), alice).body), 2 ** 31),
    );
    // It has forged before. Gossipsub itself listens less and less to one that does, so how many of many arrive is not said.
    middle.reputation.noteForged(peerOf(first), 4);
    let forged = 2;
    await until(
      'the forger is left',
      () => {
        const sourceText = accepted.message.sourceText!.replace('"n":2', `"n":${++forged}`);
        first.gossip.publish([{ ...accepted, message: { ...accepted.message, sourceText } }]);
        return middle.gossip.counts;
      },
      (counts) => counts.forged >= 1 && counts.connected === 1,
      { everyMs: 100 },
    );
    for (const { core } of [middle, last]) {
      const rows = await core.rooms.db.selectFrom('messages').select('item_hash').execute();
      assert.deepEqual(
        rows.filter((row) => !sent.includes(row.item_hash)),
        [],
        'nothing that nobody signed',
      );
    }
    assert.equal(last.gossip.counts.forged, 0, 'nobody passed them on');
    assert.deepEqual(first.gossip.addresses, addresses, 'its thread is the one that it began with');

    nowMs += FORGIVEN_MS;
    middle.gossip.meet([...first.gossip.addresses, ...last.gossip.addresses]);
    await until(
      'who was banned is let back in',
      () => middle.gossip.counts,
      ({ connected }) => connected === 2,
    );
  });

  test('a message of more bytes than gossip carries cuts nobody off, however few its characters are', async () => {
    await using stack = new AsyncDisposableStack();
    const [first, second] = [await createTestGossip(stack, 1), await createTestGossip(stack, 2)];
    await connectLine([first, second]);
    let n = 0;
    const hearsMore = async () => {
      const { size } = second.core.rooms.sync.set.index;
      await until(
        'the next message',
        async () => {
          await first.core.send(alice, note(++n));
          return second.core.rooms.sync.set.index.size;
        },
        (heard) => heard > size,
        { everyMs: 100 },
      );
    };
    await hearsMore();
    const text = '漢'.repeat(190_000);
    const large = await first.core.send(alice, {
      type: 'POST',
      content: { type: 'note', content: { text } },
    });
    assert.equal(large.status, 200);
    await hearsMore();
  });

  test('only a node that is known counts as met', async () => {
    await using stack = new AsyncDisposableStack();
    const met: number[] = [];
    const create = (seed: number) => createTestGossip(stack, seed, { onMet: () => void met.push(seed) });
    const [first, second] = [await create(1), await create(2)];
    await connectLine([first, second]);
    assert.deepEqual([...new Set(met)], [1], 'the second has heard of nobody');
  });

  test('addresses are picked from whatever strangers list', () => {
    const good = '/ip4/1.2.3.4/tcp/4025/p2p/12D3KooWGRUtestabc';
    assert.deepEqual(pickAddresses([good, good, 7, null, '/ip4/1.2.3.4', `${good} x`, {}]), [good]);
    const wrong = ['/ip4/999.2.3.4/tcp/1', '/ip4/1.2.3.4/tcp/65536', '/ip6/zzz/tcp/1', '/ip6/1.2.3.4/tcp/1'];
    assert.deepEqual(pickAddresses(wrong.map((address) => `${address}/p2p/12D3KooWGRUtestabc`)), []);
    fc.assert(
      fc.property(fc.array(fc.anything()), (values) =>
        pickAddresses(values).every((one) => one.startsWith('/')),
      ),
    );
  });
});
