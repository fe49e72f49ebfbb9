import type TypeBox from 'typebox';

/**
 * TypeBox's builder of schemas, for the kinds that we use: its types, its JSON and its hidden marks, without its four hundred
 * modules, which every command and every daemon would load at its start.
 */

export type { Static, TArray, TObject, TProperties, TSchema, TSchemaOptions } from 'typebox';

type Builder = Pick<
  typeof TypeBox,
  | ('Array' | 'Boolean' | 'Enum' | 'Integer' | 'Literal' | 'Null' | 'Number' | 'Object')
  | ('Optional' | 'Record' | 'String' | 'Union' | 'Unknown' | 'Unsafe')
>;

type Json = Readonly<Record<string, unknown>>;

/** Properties that are not part of the JSON, as TypeBox hides them. */
const hide = (schema: object, marks: Json): object =>
  Object.defineProperties(
    schema,
    Object.fromEntries(
      Object.entries(marks).map(([name, value]) => [name, { value, configurable: true, writable: true }]),
    ),
  );

const make = (kind: string, schema: Json, options?: Json) =>
  hide({ ...schema, ...options }, { '~kind': kind });

/** A copy, so that a schema may be optional in one place alone. */
const mark = (schema: object, marks: Json) =>
  hide(Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)), marks);

const isRequired = (schema: object) => !('~optional' in schema);

const builder: Record<keyof Builder, (...given: never[]) => object> = {
  Array: (items: object, options?: Json) => make('Array', { type: 'array', items }, options),
  Boolean: (options?: Json) => make('Boolean', { type: 'boolean' }, options),
  Enum: (values: readonly unknown[], options?: Json) => make('Enum', { enum: values }, options),
  Integer: (options?: Json) => make('Integer', { type: 'integer' }, options),
  Literal: (value: unknown, options?: Json) => make('Literal', { type: typeof value, const: value }, options),
  Null: (options?: Json) => make('Null', { type: 'null' }, options),
  Number: (options?: Json) => make('Number', { type: 'number' }, options),
  Object(properties: Readonly<Record<string, object>>, options?: Json) {
    const required = Object.keys(properties).filter((name) => isRequired(properties[name]!));
    return make(
      'Object',
      { type: 'object', ...(required.length > 0 ? { required } : {}), properties },
      options,
    );
  },
  Optional: (schema: object) => mark(schema, { '~optional': true }),
  /** Names are any text. */
  Record: (_key: object, value: object, options?: Json) =>
    make('Record', { type: 'object', patternProperties: { '^.*$': value } }, options),
  String: (options?: Json) => make('String', { type: 'string' }, options),
  Union: (anyOf: readonly object[], options?: Json) => make('Union', { anyOf }, options),
  Unknown: (options?: Json) => make('Unknown', {}, options),
  Unsafe: (schema: object) => mark(schema, { '~unsafe': null }),
};

/** Its types are TypeBox's own: the test beside this file compares what both make. */
export const Type = builder as unknown as Builder;
