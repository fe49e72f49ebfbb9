import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { RouteChange } from '../dataplane/port.ts';
import { explainFailure } from './explain.ts';
import { type Instance, isReachableAddress, parseInstance } from './instance.ts';
import { InstanceTable } from './table.ts';
import { compile } from './testing/compile.ts';
import { collidingInstance, hashOf, instance } from './testing/setup.ts';

const DOMAIN = 'skerry.localhost';
const HOSTNAME = `farm-manage-desk-seek.${DOMAIN}`;

describe('compile', () => {
  test('the earliest by timestamp, then by hash, has a shared name; order does not matter', () => {
    const late = instance({ hash: hashOf('5330dcefe180'), createdAt: 1001 });
    const second = instance({ hash: hashOf('5330dcefe182') });
    const first = instance({ hash: hashOf('5330dcefe181') });
    for (const order of [
      [late, second, first],
      [first, second, late],
      [second, first, late],
    ]) {
      const table = compile(order, DOMAIN);
      assert.deepEqual([...table.keys()], [HOSTNAME]);
      assert.equal(table.get(HOSTNAME)?.instanceHash, first.hash);
    }
  });

  test('active: an address is known and the owner wants it to run, whatever its phase', () => {
    const activeOf = (changes: Partial<Instance>) =>
      compile([instance(changes)], DOMAIN).get(HOSTNAME)?.active;
    assert.equal(activeOf({ phase: 'starting' }), true);
    assert.equal(activeOf({ ipv6: null }), false);
    assert.equal(activeOf({ desired: 'stopped' }), false);
  });

  test('order-free', () => {
    fc.assert(
      fc.property(fc.uniqueArray(collidingInstance, { selector: (one) => one.hash }), (instances) => {
        const forward = compile(instances, DOMAIN);
        const sorted = (table: typeof forward) => [...table].sort(([a], [b]) => (a < b ? -1 : 1));
        assert.deepEqual(sorted(compile(instances.toReversed(), DOMAIN)), sorted(forward));
      }),
    );
  });
});

describe('the table, kept up to date', () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: collidingInstance.map((one) => ({ put: one })) },
    { weight: 1, arbitrary: collidingInstance.map((one) => ({ remove: one.hash })) },
  );

  test('after any changes it is what compile gives, and the routes told are the routes there', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const table = new InstanceTable(DOMAIN);
        const known = new Map<string, Instance>();
        const told = new Map<string, string>();
        for (const one of steps) {
          let changes: RouteChange[];
          if ('put' in one) {
            known.set(one.put.hash, one.put);
            changes = table.put(one.put);
          } else {
            known.delete(one.remove);
            changes = table.remove(one.remove);
          }
          assert.ok(changes.length <= 1);
          for (const { hostname, ipv6, proxyHeader } of changes)
            ipv6 === null ? told.delete(hostname) : told.set(hostname, `${ipv6} ${proxyHeader ?? false}`);
          const compiled = compile(known.values(), DOMAIN);
          assert.deepEqual(new Map(table.compiled()), new Map([...compiled]));
          const active = [...compiled]
            .filter(([, route]) => route.active)
            .map(([name, route]) => [name, `${route.ipv6} ${route.proxyHeader}`]);
          assert.deepEqual(told, new Map(active as [string, string][]));
          assert.deepEqual(
            new Map(
              Array.from(table.routes(), (route) => [
                route.hostname,
                `${route.ipv6} ${route.proxyHeader ?? false}`,
              ]),
            ),
            told,
          );
          assert.equal(table.routeCount, told.size);
          assert.equal(table.instanceCount, known.size);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('the later of two takes over when the earlier is gone', () => {
    const table = new InstanceTable(DOMAIN);
    const later = instance({ hash: hashOf('5330dcefe181'), createdAt: 2000, ipv6: '2001:db8::2' });
    const earlier = instance();
    assert.deepEqual(table.put(later), [{ hostname: HOSTNAME, ipv6: '2001:db8::2' }]);
    assert.deepEqual(table.put(earlier), [{ hostname: HOSTNAME, ipv6: '2001:db8::1' }]);
    assert.deepEqual(table.remove(earlier.hash), [{ hostname: HOSTNAME, ipv6: '2001:db8::2' }]);
    assert.deepEqual(table.remove(earlier.hash), []);
  });
});

describe('explanations', () => {
  const table = new InstanceTable(DOMAIN);
  table.put(instance({ ipv6: null, phase: 'scheduled', reason: 'no node has room' }));
  table.put(instance({ hash: hashOf('5330dcefe181'), createdAt: 2000 }));
  table.put(instance({ hash: hashOf('ffffffffffff'), desired: 'stopped' }));
  table.put(instance({ hash: hashOf('63faf8b5db1'), phase: 'starting' }));
  const why = (hostname: string, failure: Parameters<typeof explainFailure>[2] = 'not_routed') =>
    explainFailure(table, hostname, failure, 80);

  test('say the first thing that is missing', () => {
    assert.match(why('example.org').message, /not a name of this gateway/);
    assert.match(why(DOMAIN).message, /not a name of this gateway/);
    assert.match(why(`a-b-c-d.${DOMAIN}`).message, /not four words/);
    assert.match(why(`zoo-zoo-zoo-about.${DOMAIN}`).message, /No instance known to this gateway/);
    const noAddress = why(HOSTNAME);
    assert.equal(noAddress.code, 'INSTANCE_NOT_ROUTED');
    assert.match(noAddress.message, /no address yet.*"scheduled" \(no node has room\).*1 other instance/);
    assert.match(why(`zoo-zoo-zoo-zoo.${DOMAIN}`).message, /stopped by its owner/);
  });

  test('and what an attempt met with', () => {
    const name = `glue-style-coin-renew.${DOMAIN}`;
    assert.match(
      why(name, 'refused').message,
      /Nothing accepts connections at \[2001:db8::1\]:80.*"starting"/,
    );
    assert.equal(why(name, 'connect_timeout').code, 'INSTANCE_TIMED_OUT');
    assert.match(why(`zoo-zoo-zoo-about.${DOMAIN}`, 'refused').message, /No instance/);
  });
});

describe('what a core node says', () => {
  const view = {
    instance_id: 'a'.repeat(64),
    created_at: 1,
    ipv6: '2a00:db8:0:1:3:aaaa:aaaa:aaa1',
    desired: 'running',
    phase: 'starting',
    reason: { code: 'X', message: 'why' },
    more: 'fields of newer nodes',
  };
  const strict = { allowLocal: false, allowPrivate: false };

  test('is read, and refused where it is malformed', () => {
    assert.deepEqual(parseInstance(view, strict), {
      hash: 'a'.repeat(64),
      createdAt: 1,
      effectiveAt: 1,
      placed: true,
      ipv6: view.ipv6,
      refusedIpv6: null,
      desired: 'running',
      proxyHeader: false,
      phase: 'starting',
      reason: 'why',
      reasonCode: 'X',
    });
    assert.equal(parseInstance({ ...view, ipv6: '' }, strict).ipv6, null);
    const asked = { allowedPorts: [443], proxyProtocol: true };
    assert.equal(parseInstance({ ...view, firewall: asked }, strict).proxyHeader, true);
    for (const wrong of [
      { firewall: { proxyProtocol: 1 } },
      { instance_id: 'x' },
      { created_at: '1' },
      { desired: 'maybe' },
      { ipv6: 7 },
    ])
      assert.throws(() => parseInstance({ ...view, ...wrong }, strict), { code: 'INVALID_CONTENT' });
  });

  test('an address that means this machine or this link is none', () => {
    for (const local of [
      '::1',
      '::',
      '::127.0.0.1',
      '::ffff:10.0.0.1',
      'fe80::1',
      'ff02::1',
      'fe80::1%eth0',
      'x',
    ])
      assert.equal(isReachableAddress(local, view.instance_id, strict), false, local);
    assert.equal(isReachableAddress('::1', view.instance_id, { ...strict, allowLocal: true }), true);
  });
});
