import assert from 'node:assert/strict';
import { test } from 'node:test';
import { multiaddr } from '@multiformats/multiaddr';
import { createReach } from '@skerry/kit';
import fc from 'fast-check';
import { PEER_LIMITS } from './limits.ts';
import { ByteRate } from './rate.ts';
import { createGater } from './reach.ts';
import { RecentBlocks } from './recent.ts';
import { readProviders } from './routing.ts';

test('only public IP addresses are called, and what the operator named; one address has few connections', () => {
  const named = '/dns4/boot.example/tcp/4001';
  const connections: { remoteAddr: ReturnType<typeof multiaddr> }[] = [];
  const gater = createGater(createReach(false), new Set([named]), () => connections);
  const denied = ['/ip4/127.0.0.1/tcp/1', '/ip4/10.0.0.1/tcp/1', '/ip6/::1/tcp/1', '/ip6/fd00::1/tcp/1'];
  for (const text of [...denied, '/dns4/evil.example/tcp/1', '/ip4/169.254.169.254/tcp/80'])
    assert.equal(gater.denyDialMultiaddr(multiaddr(text)), true, text);
  for (const text of ['/ip4/1.1.1.1/tcp/4001', '/ip6/2606:4700::1/tcp/4001', named])
    assert.equal(gater.denyDialMultiaddr(multiaddr(text)), false, text);
  const calls = (text: string) => gater.denyInboundConnection({ remoteAddr: multiaddr(text) } as never);
  assert.equal(calls('/ip4/1.1.1.1/tcp/1'), false);
  for (let n = 0; n < PEER_LIMITS.connectionsPerAddress; n++)
    connections.push({ remoteAddr: multiaddr(`/ip6/2606:4700::${n}/tcp/1`) });
  assert.equal(calls('/ip6/2606:4700::ffff/tcp/1'), true);
  assert.equal(calls('/ip6/2606:4700:1::1/tcp/1'), false);
});

test('what goes out beyond the rate is made up for by waiting', async () => {
  let nowMs = 0;
  const rate = new ByteRate(1_000, () => nowMs);
  rate.note(3_500);
  assert.equal(rate.owedMs, 2_500);
  assert.equal(rate.isRested, false);
  nowMs += 2_500;
  assert.equal(rate.owedMs, 0);
  await rate.wait(undefined);
  nowMs += 10_000;
  assert.equal(rate.isRested, true);
});

test('blocks that were found are kept within a bound', () => {
  const recent = new RecentBlocks(100);
  for (let n = 0; n < 10; n++) recent.add(`${n}`, Buffer.alloc(30));
  assert.deepEqual(
    Array.from({ length: 10 }, (_, n) => recent.get(`${n}`) !== undefined).filter(Boolean).length,
    3,
  );
  recent.add('large', Buffer.alloc(101));
  assert.equal(recent.get('large'), undefined);
});

test('whatever a delegated router answers, a few peers are read from it', () => {
  const good = { Schema: 'peer', ID: '12D3KooW', Addrs: ['/ip4/1.1.1.1/tcp/1', 7], Protocols: [] };
  assert.deepEqual(readProviders(JSON.stringify({ Providers: [good, null, { ID: 7 }] })), [
    { id: '12D3KooW', addresses: ['/ip4/1.1.1.1/tcp/1'] },
  ]);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.array(fc.anything()).map((Providers) => safe({ Providers })),
      ),
      (body) => {
        const found = readProviders(body);
        return found.length <= PEER_LIMITS.providers && found.every(({ id }) => typeof id === 'string');
      },
    ),
    { numRuns: 1_000 },
  );
});

const safe = (value: unknown) =>
  JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one)) ?? '';
