import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { shapeKeyOf, shapeOf } from './shape.ts';

test('the shape of contents that are alike is written once', (t) => {
  const keyOf = (n: number) =>
    shapeKeyOf({ type: 'POST', contentType: 'note', content: { n, list: [{ n }, { n }] } });
  const key = keyOf(1);
  assert.equal(key, '["POST","note",[".list",".list[*]",".list[*].n",".n"]]');
  const writing = t.mock.method(JSON, 'stringify');
  assert.equal(keyOf(2), key);
  assert.equal(writing.mock.callCount(), 0);
});

const member = fc.letrec((tie) => ({
  any: fc.oneof({ maxDepth: 4 }, fc.constant(1), tie('list'), tie('object')),
  list: fc.array(tie('any'), { maxLength: 3 }),
  object: fc.dictionary(fc.constantFrom('a', 'b', '[*]', 'a.b', '"', '__proto__'), tie('any')),
}));

test('what was met before changes no shape: each is of its own paths, its type and its content type', () => {
  const types = fc.constantFrom('POST', '.a', '');
  fc.assert(
    fc.property(types, fc.option(types, { nil: null }), member.object, (type, contentType, given) => {
      const content = given as Readonly<Record<string, unknown>>;
      const paths = shapeOf(content);
      assert.deepEqual(paths, [...new Set(paths)].sort());
      assert.equal(shapeKeyOf({ type, contentType, content }), JSON.stringify([type, contentType, paths]));
    }),
  );
});

/** The shortest of a few times, milliseconds: others use the processor, too. */
const timeOf = (content: Readonly<Record<string, unknown>>) =>
  Math.min(
    ...Array.from({ length: 5 }, () => {
      const startMs = performance.now();
      shapeOf(content);
      return performance.now() - startMs;
    }),
  );

test('a path of the members of an array takes as long to find in a shape of sixty as in one of two', () => {
  const perPath = (names: number) => {
    const members = 5_000;
    const one = Object.fromEntries(Array.from({ length: names }, (_, at) => [`n${at + 10}`, at]));
    const list = Array.from({ length: members }, () => ({ ...one }));
    return timeOf({ ['a'.repeat(240)]: list }) / (members * names);
  };
  const ratio = perPath(60) / perPath(2);
  assert.ok(ratio < 4, `${ratio} times as long`);
});
