import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Instance, parseInstance, sinceOf } from './instance.ts';
import { InstanceTable } from './table.ts';
import { compile } from './testing/compile.ts';
import { collidingInstance, hashOf, instance } from './testing/setup.ts';
import { explainWhy, parseWhySubject } from './why.ts';

const DOMAIN = 'skerry.localhost';
const NAME = 'farm-manage-desk-seek';
const T = 1_700_000_000;

/** As a core node tells it. */
const told = (tail: string, more: Record<string, unknown> = {}): Instance =>
  parseInstance(
    {
      instance_id: `${hashOf('5330dcefe18', tail)}${tail}`,
      created_at: T,
      effective_at: T,
      placed: true,
      ipv6: `2001:db8::${tail}`,
      desired: 'running',
      phase: 'running',
      reason: null,
      ...more,
    },
    { allowLocal: true, allowPrivate: false },
  );
const holderOf = (...instances: Instance[]) =>
  compile(instances, DOMAIN).get(`${NAME}.${DOMAIN}`)?.instanceHash;

describe('who has a host name', () => {
  const victim = told('1');
  const claimed = told('2', { created_at: 0, effective_at: T + 86_400 });

  test('H2: an instance that is dated 1970 and came a day later does not take the name', () => {
    assert.equal(holderOf(claimed, victim), victim.hash);
    const table = new InstanceTable(DOMAIN);
    table.put(claimed);
    table.put(victim);
    const why = (hash: string) => explainWhy(table, parseWhySubject(hash, DOMAIN), [], undefined);
    const { steps, missing } = why(claimed.hash);
    assert.match(
      steps[0]!.detail,
      /2023-11-15T22:13:20\.000Z, when a core node first recorded it \(its timestamp 1970/,
    );
    assert.match(missing!.message, new RegExp(`collision lost: ${victim.hash} has the name: the earlier`));
    assert.match(why(victim.hash).steps[1]!.detail, /it has the name; 1 other/);
  });

  test('H2: an instance that never had an address takes a name from nobody', () => {
    const nowhere = told('0', { effective_at: T - 500, created_at: T - 500, ipv6: '', placed: false });
    assert.equal(holderOf(nowhere, victim), victim.hash);
    const table = new InstanceTable(DOMAIN);
    for (const one of [nowhere, victim]) table.put(one);
    const { missing } = explainWhy(table, parseWhySubject(nowhere.hash, DOMAIN), [], undefined);
    assert.match(missing!.message, /an instance that never had an address takes a name from nobody/);
  });

  test('H2: nobody takes the name of an instance that waits for its next node', () => {
    assert.equal(holderOf(told('1', { ipv6: '' }), claimed), victim.hash);
  });

  test('H2: of honest instances the earlier timestamp has the name, as ever', () => {
    assert.equal(holderOf(told('0', { created_at: T + 1, effective_at: T + 1 }), victim), victim.hash);
    fc.assert(
      fc.property(
        fc.uniqueArray(collidingInstance, { minLength: 2, selector: ({ hash }) => hash }),
        (all) => {
          const placed = all.map((one) => ({ ...one, placed: true }));
          for (const [hostname, { instanceHash }] of compile(placed, DOMAIN)) {
            const named = placed.filter((one) => compile([one], DOMAIN).has(hostname));
            assert.equal(
              Math.min(...named.map(({ createdAt }) => createdAt)),
              named.find(({ hash }) => hash === instanceHash)!.createdAt,
            );
          }
        },
      ),
    );
  });

  test('H2: a core node of before these fields is read as it was', () => {
    const old = told('3', { effective_at: undefined, placed: undefined });
    assert.deepEqual([old.effectiveAt, old.placed], [T, true]);
  });
});

test('H2: thousands of instances that a core node tells under one name take a few comparisons each', () => {
  let read = 0;
  const counted = Array.from({ length: 4_000 }, (_, at) => {
    const tail = ((at * 7_919) % 4_000).toString(16).padStart(4, '0');
    return Object.defineProperty(
      instance({ hash: `${hashOf('5330dcefe18', tail)}${tail}` as Instance['hash'] }),
      'placed',
      {
        get: () => {
          read++;
          return true;
        },
      },
    );
  });
  const table = new InstanceTable(DOMAIN);
  for (const one of counted) table.put(one);
  assert.equal(table.listNamed(NAME).length, 4_000);
  for (const one of counted) table.remove(one.hash);
  assert.deepEqual([table.nameCount, table.sharedCount, table.routeCount], [0, 0, 0]);
  assert.ok(read < 4_000 * 100, `${read} reads of what orders them`);
});

test('H2: an instance whose date no calendar has cannot be read, and so never has to be explained', () => {
  assert.throws(() => told('3', { created_at: 9e15, effective_at: 9e15 }), { code: 'INVALID_CONTENT' });
  assert.throws(() => told('3', { effective_at: 8.64e12 + 1 }), { code: 'INVALID_CONTENT' });
  assert.match(sinceOf(told('3', { created_at: 8.64e12, effective_at: 8.64e12 })), /275760/);
});
