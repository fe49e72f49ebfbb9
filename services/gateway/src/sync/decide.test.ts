import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Instance } from '../table/instance.ts';
import { collidingInstance, hashOf, instance } from '../table/testing/setup.ts';
import { decideSync, isSuspicious, MASS_LOSS_MIN, type SyncInput } from './decide.ts';

const byHash = (instances: Instance[]) => new Map(instances.map((one) => [one.hash as string, one]));
const many = (count: number, changes: Partial<Instance> = {}) =>
  Array.from({ length: count }, (_, i) =>
    instance({ hash: hashOf(i.toString(16).padStart(11, '0')), ...changes }),
  );

function decide(known: Instance[], source: Instance[], more: Partial<SyncInput> = {}) {
  return decideSync({
    known: byHash(known),
    source: byHash(source),
    untouchable: new Set(),
    acceptLoss: false,
    ...more,
  });
}

test('a source that suddenly knows much less is suspicious; an empty one always', () => {
  assert.equal(isSuspicious(0, 0, true), false);
  assert.equal(isSuspicious(1, 1, true), true);
  assert.equal(isSuspicious(MASS_LOSS_MIN - 1, MASS_LOSS_MIN, false), false);
  assert.equal(isSuspicious(MASS_LOSS_MIN, MASS_LOSS_MIN + 1, false), true);
  assert.equal(isSuspicious(MASS_LOSS_MIN, 10 * MASS_LOSS_MIN, false), false);
});

test('what is gone goes, unless too much of it is', () => {
  const known = many(40);
  assert.deepEqual(decide(known, known.slice(5)).remove, known.slice(0, 5));
  const held = decide(known, known.slice(30));
  assert.deepEqual([held.remove, held.heldBack], [[], 30]);
  const meant = decide(known, known.slice(30), { acceptLoss: true });
  assert.deepEqual([meant.remove.length, meant.heldBack], [30, 0]);
  assert.equal(decide(known.slice(0, 1), []).heldBack, 1);
});

test('a mass loss of addresses is a loss as well; what is new is taken all the same', () => {
  const known = many(40);
  const fresh = instance({ hash: hashOf('fff') });
  const held = decide(known, [...known.map((one) => ({ ...one, ipv6: null })), fresh]);
  assert.deepEqual([held.put, held.heldBack, held.added], [[fresh], 40, 1]);
});

test('an instance stays where it is while what placed it is taken back, until somebody says where it is', () => {
  const ours = instance({ refusedIpv6: null });
  const unsaid = { ipv6: null, placed: false, phase: 'scheduled' as const, reasonCode: 'AWAITING_NODE' };
  const [kept] = decide([ours, ...many(3)], [instance(unsaid), ...many(3)]).put;
  assert.deepEqual([kept!.ipv6, kept!.placed, kept!.phase], [ours.ipv6, true, 'scheduled']);
  const [gone] = decide(
    [ours, ...many(3)],
    [instance({ ...unsaid, reasonCode: 'NO_CAPACITY' }), ...many(3)],
  ).put;
  assert.equal(gone!.ipv6, null);
  assert.deepEqual(decide([], [instance(unsaid)]).put, [instance(unsaid)]);
  const moved = instance({ ipv6: '2001:db8::2' });
  assert.deepEqual(decide([kept!], [moved]).put, [moved]);
});

test('stopped by their owners is no loss', () => {
  const known = many(40);
  assert.equal(decide(known, many(40, { desired: 'stopped' })).changed, 40);
});

test('what the stream told meanwhile stays as it is', () => {
  const ours = instance({ phase: 'running' });
  const theirs = instance({ phase: 'starting' });
  const untouchable = new Set([ours.hash]);
  assert.deepEqual(decide([ours], [theirs], { untouchable }).put, []);
  assert.deepEqual(decide([ours, ...many(3)], many(3), { untouchable }).remove, []);
});

test('where nothing is held back, the outcome is the source', () => {
  const list = fc.uniqueArray(collidingInstance, { selector: (one) => one.hash });
  fc.assert(
    fc.property(list, list, (known, source) => {
      const { put, remove, added, changed } = decide(known, source, { acceptLoss: true });
      const after = byHash(known);
      for (const one of remove) after.delete(one.hash);
      for (const one of put) after.set(one.hash, one);
      assert.deepEqual(new Map([...after].sort()), new Map([...byHash(source)].sort()));
      assert.equal(put.length, added + changed);
    }),
  );
});
