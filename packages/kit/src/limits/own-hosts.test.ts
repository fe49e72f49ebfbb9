import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClientOf } from './client.ts';
import { OwnHosts } from './own-hosts.ts';

test("a host that is found later, or has moved, is one of the network's own; one that is not found keeps what it had", async () => {
  const names = new Map<string, string[] | undefined>();
  let nowMs = 0;
  let looked = 0;
  const ownHosts = new OwnHosts(
    ['https://core.example:4021/x', 'http://[::1]:4020'],
    async (name) => {
      looked++;
      const found = names.get(name);
      if (!found) throw new Error('ENOTFOUND');
      return found.map((address) => ({ address }));
    },
    () => nowMs,
  );
  const clientOf = createClientOf({ exempt: [], trustedProxies: [], ownHosts });
  const isExempt = (remoteAddress: string) => clientOf({ socket: { remoteAddress }, headers: {} }).isExempt;
  /** What was looked up is seen by whoever comes after. */
  const settle = () => new Promise((done) => setImmediate(done));
  await settle();
  assert.equal(isExempt('192.0.2.1'), false);
  names.set('core.example', ['192.0.2.1', '2001:db8::1']).set('::1', ['::1']);
  await settle();
  assert.equal(looked, 2, 'not again within a minute');
  nowMs += 60_000;
  assert.equal(isExempt('192.0.2.1'), false, 'whoever asks waits for no answer');
  await settle();
  const own = ['192.0.2.1', '::ffff:192.0.2.1', '2001:DB8:0::1', '::1'];
  assert.deepEqual(own.map(isExempt), [true, true, true, true]);
  names.set('core.example', undefined);
  nowMs += 60_000;
  isExempt('192.0.2.1');
  await settle();
  assert.equal(isExempt('192.0.2.1'), true);
  names.set('core.example', ['192.0.2.7']);
  nowMs += 60_000;
  isExempt('192.0.2.1');
  await settle();
  assert.deepEqual(['192.0.2.1', '192.0.2.7', '192.0.2.8'].map(isExempt), [false, true, false]);
  assert.equal(looked, 8);
});
