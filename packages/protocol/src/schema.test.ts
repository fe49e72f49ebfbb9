import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from './errors.ts';
import { parseForgetContent } from './forms.ts';
import { createCheck, createParser } from './schema.ts';
import { Type } from './type.ts';

const refusalOf = (act: () => unknown): AppError => {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('it was taken');
};

test('a schema is compiled when it is first needed, not when a process that may never need it starts', () => {
  let reads = 0;
  const schema = {
    ...Type.Object({ name: Type.String() }),
    get required() {
      reads++;
      return ['name'];
    },
  };
  const parse = createParser(schema, 'an island');
  const isIsland = createCheck(schema);
  assert.equal(reads, 0);
  assert.deepEqual(parse({ name: 'Skerry' }), { name: 'Skerry' });
  assert.ok(reads > 0);
  assert.ok(isIsland({ name: 'Skerry' }) && !isIsland({}));
  assert.throws(
    () => parse({}),
    (error) => error instanceof AppError && error.message === 'an island lacks "name"',
  );
});

test('of a value that has more than there is room for only that is said: to look for all that is wrong with it took minutes', () => {
  // Each of them repeats the one before: the list of what is repeated was copied for each.
  const { code, message } = refusalOf(() => parseForgetContent({ hashes: Array(20_000).fill(1) }));
  assert.deepEqual([code, message], ['INVALID_CONTENT', 'content.hashes must not have more than 1000 items']);

  const parse = createParser(
    Type.Object(
      {
        inner: Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String(), { maxItems: 2 })])),
        list: Type.Optional(Type.Array(Type.String())),
        names: Type.Optional(Type.Record(Type.String(), Type.String(), { maxProperties: 2 })),
      },
      { additionalProperties: false },
    ),
    'an island',
  );
  const sentence = (value: unknown) => refusalOf(() => parse(value)).message;
  assert.equal(sentence({ inner: [1, 2, 3] }), 'an island.inner must not have more than 2 items');
  assert.equal(
    sentence({ names: { a: 1, b: 2, c: 3 } }),
    'an island.names must not have more than 2 properties',
  );
  assert.match(sentence({ list: Array(20_000).fill(1) }), /^an island\.list has 20000 items, /);
  const fields = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`f${n}`, n]));
  assert.equal(
    sentence(fields),
    'an island has no field "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7" and 92 others; fields: inner, list, names',
  );
  assert.equal(sentence({ colour: 'red' }), 'an island has no field "colour"; fields: inner, list, names');
});
