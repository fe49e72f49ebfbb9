import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EnvelopeShape } from './content/envelope-shape.ts';
import { AppError } from './errors.ts';
import { parseForgetContent } from './forms.ts';
import { createCheck, createParser, describeMismatch } from './schema.ts';
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

test('of a date that is wrong its unit is told: clocks of JavaScript count milliseconds, and those of Python have fractions', () => {
  const parse = createParser(EnvelopeShape, 'body');
  const sentence = (timestamp: unknown) =>
    refusalOf(() =>
      parse({
        message: { chain: 'ETH', channel: 'notes', type: 'POST', timestamp, content: {} },
        signature: '0x',
        address: '0x',
      }),
    ).message;
  assert.equal(
    sentence(1_800_000_000_000),
    'body.message.timestamp must be an integer from 0 to 9223372036 (Unix seconds, not milliseconds)',
  );
  assert.equal(
    sentence(1_800_000_000.5),
    'body.message.timestamp must be an integer from 0 to 9223372036 (Unix seconds)',
  );
  assert.equal(
    sentence('now'),
    'body.message.timestamp must be an integer from 0 to 9223372036 (Unix seconds)',
  );

  // As Ajv says it of a query: with the schema of the place.
  const parentSchema = Type.Number({ description: 'Unix milliseconds, inclusive' });
  const error = {
    keyword: 'type',
    instancePath: '/from',
    message: 'must be number',
    params: {},
    parentSchema,
  };
  const { message } = describeMismatch('query', 'INVALID_PARAMETERS', [error]);
  assert.equal(message, 'query.from must be a number (Unix milliseconds)');
});

test('of a number that is wrong all that it may be is told, whichever of its bounds it broke', () => {
  const parse = createParser(
    Type.Object({
      page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
      least: Type.Optional(Type.Number({ minimum: 0.5 })),
      most: Type.Optional(Type.Integer({ maximum: 9 })),
      any: Type.Optional(Type.Number()),
      is: Type.Optional(Type.Boolean()),
    }),
    'a book',
  );
  const sentence = (book: object) => refusalOf(() => parse(book)).message;
  for (const page of [0, 101, 1.5, 'x', null])
    assert.equal(sentence({ page }), 'a book.page must be an integer from 1 to 100');
  for (const least of [0, '1'])
    assert.equal(sentence({ least }), 'a book.least must be a number, at least 0.5');
  for (const most of [10, true])
    assert.equal(sentence({ most }), 'a book.most must be an integer, at most 9');
  assert.equal(sentence({ any: '' }), 'a book.any must be a number');
  assert.equal(sentence({ is: 1 }), 'a book.is must be true or false');

  // An order of a query, as Ajv has it: a type with its values.
  const parentSchema = { type: 'integer', enum: [-1, 1] };
  const error = {
    keyword: 'type',
    instancePath: '/sortOrder',
    message: 'must be integer',
    params: {},
    parentSchema,
  };
  assert.equal(
    describeMismatch('query', 'INVALID_PARAMETERS', [error]).message,
    'query.sortOrder must be one of -1, 1',
  );
});
