import type { ErrorCode } from '@skerry/protocol';
import { errorsOf, type Operation } from '@skerry/protocol/api/operation';
import { contentOfAnswer, contentOfBody } from './document.ts';

/** A contract as people read it: types as text, and what several operations have in common. Pure. */

export interface Schema {
  readonly title?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly description?: string;
  readonly format?: string;
}

const NESTING_MAX = 8;

/** A schema as people write types: `{ name: string, ports?: integer[] }`. What has a name stands there by it. */
export function typeText(schema: Schema, indent = ''): string {
  const inner = (one: Schema, deeper = indent) => one.title ?? typeText(one, deeper);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.anyOf) return schema.anyOf.map((one) => inner(one)).join(' | ');
  if (schema.items) return `${inner(schema.items)}[]`;
  const [ofAny] = Object.values(schema.patternProperties ?? {});
  if (ofAny) return `{ [key]: ${inner(ofAny)} }`;
  if (schema.properties && indent.length < NESTING_MAX * 2) {
    const lines = Object.entries(schema.properties).map(([name, one]) => {
      const mark = schema.required?.includes(name) ? '' : '?';
      const note = one.description === undefined ? '' : `  // ${one.description}`;
      return `${indent}  ${name}${mark}: ${inner(one, `${indent}  `)}${note}`;
    });
    return `{\n${lines.join('\n')}\n${indent}}`;
  }
  return schema.format === 'binary' ? 'bytes' : [schema.type ?? 'any'].flat().join(' | ');
}

/** Every schema with a title that is reached from one, itself included. */
function* namedIn(schema: Schema): Generator<Schema> {
  if (schema.title !== undefined) yield schema;
  const { properties = {}, patternProperties = {}, items, anyOf = [] } = schema;
  const below = [...Object.values(properties), ...Object.values(patternProperties), ...anyOf];
  for (const one of items ? [...below, items] : below) yield* namedIn(one);
}

const contentsOf = ({ body, answers }: Operation) => [
  ...(body ? [contentOfBody(body)] : []),
  ...Object.values(answers).map(contentOfAnswer),
];

/** Every schema with a title that operations send or answer, by its title. */
export function listNamed(operations: readonly Operation[]): [title: string, schema: Schema][] {
  const named = new Map(
    operations
      .flatMap(contentsOf)
      .flatMap((content) => Object.values(content))
      .flatMap((schema) => [...namedIn(schema as Schema)].map((one) => [one.title!, one] as const)),
  );
  return [...named].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** What every operation may answer is told once. */
export function commonErrors(operations: readonly Operation[]): ReadonlySet<ErrorCode> {
  const [first = new Set<ErrorCode>(), ...others] = operations.map((one) => new Set(errorsOf(one)));
  return new Set([...first].filter((code) => others.every((codes) => codes.has(code))));
}
