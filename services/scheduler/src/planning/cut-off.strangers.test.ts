import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decideCutOff, type Sighting } from './cut-off.ts';

const see = (isInReach: boolean, own: Partial<Sighting> = {}): Sighting => ({
  isInReach,
  isListed: false,
  prefix: null,
  ...own,
});
const listedIn = (prefix: string | null, isInReach = true) => see(isInReach, { isListed: true, prefix });
const strangers = (count: number, isInReach: boolean) =>
  Array.from({ length: count }, () => see(isInReach, { prefix: '2a09:1::/64' }));

const [here, there, elsewhere] = ['2a00:1:2:3::/64', '2a01:1::/64', '2a02:0:0:7::/64'];

test('strangers that fall silent together make no scheduler believe that it is cut off, where its own nodes answer elsewhere', () => {
  const silent = strangers(100, false);
  assert.ok(!decideCutOff([...silent, listedIn(here), listedIn(there)]));
  assert.ok(!decideCutOff([...silent, listedIn(here), listedIn(there), listedIn(elsewhere, false)]));
  assert.ok(!decideCutOff([...silent, listedIn('2a01:4f8::/64'), listedIn('2a01:4f7:ffff::/64')]));
});

test('a scheduler that reaches only what stands beside it is cut off', () => {
  const silent = strangers(3, false);
  for (const listed of [
    [],
    [listedIn(here)],
    // One provider, no network proved, private ones.
    [listedIn(here), listedIn('2a00:1:9::/64')],
    // One /29: registries allocate as much to one provider.
    [listedIn('2a01:4f8:1::/64'), listedIn('2a01:4f9:1::/64')],
    [listedIn('2a00::/64'), listedIn('2a00:7:1::/64')],
    [listedIn(here), listedIn(null)],
    [listedIn(here), listedIn('fd00:1::/64')],
    // Most of them are out of reach, too.
    [listedIn(here), listedIn(there), ...[1, 2, 3].map(() => listedIn(elsewhere, false))],
  ])
    assert.ok(decideCutOff([...silent, ...listed]), JSON.stringify(listed));
});

test('what strangers do never makes it so against listed nodes of two providers, and never without most being lost', () => {
  const sighting = fc.record({
    isInReach: fc.boolean(),
    isListed: fc.boolean(),
    prefix: fc.constantFrom(null, here, there, elsewhere, 'fd00::/64'),
  });
  fc.assert(
    fc.property(fc.array(sighting), fc.nat(50), (some, count) => {
      const lost = some.filter(({ isInReach }) => !isInReach).length;
      if (2 * lost <= some.length) assert.ok(!decideCutOff(some));
      const listed = some.filter(({ isListed }) => isListed);
      const safe = [...listed, ...[...listed, 0, 0].flatMap(() => [listedIn(here), listedIn(there)])];
      assert.ok(!decideCutOff([...safe, ...some.filter((one) => !one.isListed), ...strangers(count, false)]));
    }),
  );
});
