import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from './errors.ts';
import { createCheck, createParser } from './schema.ts';
import { Type } from './type.ts';

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
