import assert from 'node:assert/strict';
import { test } from 'node:test';
import TypeBox from 'typebox';
import { Type } from './type.ts';

/** The same schemas, by one builder or the other. */
const build = (type: Pick<typeof TypeBox, keyof typeof Type>) => {
  const text = type.String({ minLength: 1, description: 'a text' });
  const shared = type.Object({ text, maybe: type.Optional(text) }, { additionalProperties: false });
  return [
    type.Array(type.Integer({ minimum: 0 }), { maxItems: 3 }),
    type.Array(shared),
    type.Boolean(),
    type.Boolean({ default: true }),
    type.Enum(['one', 2], { description: 'either' }),
    type.Literal('a'),
    type.Literal(1, { description: 'one' }),
    type.Literal(true),
    type.Null(),
    type.Number({ exclusiveMinimum: 0 }),
    type.Object({}),
    type.Object({ nothing: type.Optional(type.Null()) }),
    shared,
    type.Optional(shared),
    type.Record(type.String({ maxLength: 8 }), type.Unknown(), { maxProperties: 2 }),
    type.Union([text, type.Null()], { title: 'Maybe' }),
    type.Unknown({ description: 'anything' }),
    type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' }),
    type.Unsafe<'a'>(type.Enum(['a'])),
    text,
  ];
};

/** A schema and what is in it: its properties in their order, then the hidden ones. */
const spell = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(spell);
  if (typeof value !== 'object' || value === null) return value;
  const properties = Object.entries(Object.getOwnPropertyDescriptors(value));
  const [shown, hidden] = [true, false].map((isShown) =>
    properties.filter(([, of]) => of.enumerable === isShown).map(([name, of]) => [name, spell(of.value)]),
  );
  return { shown, hidden: Object.fromEntries(hidden!) };
};

test('a schema is what TypeBox makes of it, its hidden marks included', () => {
  const [made, wanted] = [build(Type), build(TypeBox)];
  for (const [index, schema] of made.entries()) assert.deepEqual(spell(schema), spell(wanted[index]));
  assert.equal(made.length, wanted.length);
});
