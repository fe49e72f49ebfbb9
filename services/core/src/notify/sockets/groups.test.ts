import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { matcherOf, type Row } from '../../state/lists/matcher.ts';
import type { MessageFilter } from '../../state/lists/properties.ts';
import { Groups } from './groups.ts';

const some = (...values: string[]) => fc.subarray(values, { minLength: 1 });
const filter: fc.Arbitrary<MessageFilter> = fc.record(
  {
    addresses: some('0xa', '0xb', '0xc'),
    channels: some('x', 'y'),
    types: some('POST', 'STORE'),
    tags: some('t', 'u', 'v'),
    from: fc.nat(5),
    to: fc.nat(5),
  },
  { requiredKeys: [] },
);
const row = fc
  .record({
    sender: fc.constantFrom('0xa', '0xb', '0xd'),
    channel: fc.constantFrom('x', 'y', null),
    type: fc.constantFrom('POST', 'STORE', 'FORGET'),
    tags: fc.uniqueArray(fc.constantFrom('t', 'u', 'w')),
    time: fc.nat(5),
  })
  .map((one) => one as unknown as Row);

test('a message is given to whom it fits and to nobody else, whoever comes and goes', () => {
  fc.assert(
    fc.property(
      fc.array(filter, { maxLength: 30 }),
      fc.array(row),
      fc.array(fc.nat(29)),
      (filters, rows, leaving) => {
        const groups = new Groups<number>();
        const here = new Map(filters.map((one, member) => [member, groups.add(one, 'full', member)]));
        const check = () => {
          for (const one of rows) {
            const given = [...groups.fitting(one)]
              .flatMap(({ members }) => [...members])
              .sort((a, b) => a - b);
            const expected = [...here.keys()].filter((member) => matcherOf(filters[member]!).fits(one));
            assert.deepEqual(given, expected);
          }
        };
        check();
        for (const member of leaving) {
          const group = here.get(member);
          if (!group) continue;
          here.delete(member);
          groups.remove(group, member);
          groups.remove(group, member);
        }
        check();
        for (const [member, group] of here) groups.remove(group, member);
        assert.equal(groups.size, 0);
      },
    ),
  );
});

test('those who ask for the same are one group, in whatever order they say it', () => {
  const groups = new Groups<string>();
  const one = groups.add({ tags: ['a', 'b'], types: ['POST'] }, 'full', 'one');
  assert.equal(groups.add({ types: ['POST'], tags: ['b', 'a'] }, 'full', 'two'), one);
  assert.notEqual(groups.add({ types: ['POST'], tags: ['b', 'a'] }, 'none', 'three'), one);
  assert.equal(groups.size, 2);
});

test('who shares one property with thousands is found by another', () => {
  const groups = new Groups<number>();
  const anchors = Array.from(
    { length: 1_000 },
    (_, n) => groups.add({ channels: ['x'], addresses: [`0x${n}`] }, 'full', n).anchor?.column,
  );
  assert.ok(anchors.filter((column) => column !== 'sender').length <= 2);
  assert.equal(groups.fitting({ channel: 'x', sender: '0x7' } as unknown as Row).size, 1);
});

test('paths of contents are compared in memory, with those alone who ask for one: each such filter asked the database by itself', () => {
  const groups = new Groups<number>();
  const all = Array.from({ length: 100 }, (_, n) => groups.add({ keys: [`.a${n}`, '.b'] }, 'full', n));
  const only = groups.add({ keys: ['.c'], types: ['POST'] }, 'full', 100);
  assert.deepEqual(groups.made, ['keys']);
  const rowOf = (paths: string[] | null) => ({ type: 'POST', shape: 7, 'keys()': paths }) as unknown as Row;
  assert.deepEqual([...groups.fitting(rowOf(['.a7', '.x']))], [all[7]]);
  assert.deepEqual([...groups.fitting(rowOf(['.c']))], [only]);
  assert.equal(groups.fitting(rowOf(['.b'])).size, 100);
  assert.equal(groups.fitting(rowOf(null)).size, 0);
});
