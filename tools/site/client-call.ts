import { type AnswerForm, isContent, type Operation } from '@skerry/protocol/api/operation';
import { parametersOf } from '../../packages/kit/src/contract/parameters.ts';
import type { Source } from './contracts.ts';

/** How an operation is asked for in TypeScript: a call that the compiler takes. Pure. */

const JSON_TYPE = 'application/json';
const isJson = (form: AnswerForm) => !isContent(form) || form.content[JSON_TYPE] !== undefined;

const indent = (text: string) => text.replaceAll('\n', '\n  ');
const isName = (text: string) => /^[A-Za-z_$][\w$]*$/.test(text);

/** A value as a person writes it in TypeScript. */
export function literal(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${value.map(literal).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(
      ([key, one]) => `${isName(key) ? key : quoted(key)}: ${indent(literal(one))},`,
    );
    return fields.length === 0 ? '{}' : `{\n  ${fields.join('\n  ')}\n}`;
  }
  return typeof value === 'string' ? quoted(value) : String(value);
}

const quoted = (text: string) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
}

/** A value of a required parameter that no example has. */
function sample({ type, enum: some, const: only, minimum }: Schema): unknown {
  if (only !== undefined) return only;
  if (some) return some[0];
  if (type === 'integer' || type === 'number') return minimum ?? 1;
  return type === 'boolean' ? true : '…';
}

/** The parameters of one place: those of the example, and what is required. */
function valuesOf(operation: Operation, place: 'path' | 'query'): Record<string, unknown> {
  const given: Readonly<Record<string, unknown>> =
    operation.example?.[place === 'path' ? 'params' : 'query'] ?? {};
  const entries = parametersOf(operation)
    .filter((one) => one.in === place && (one.required || given[one.name] !== undefined))
    .map(({ name, schema }): [string, unknown] => [name, given[name] ?? sample(schema as Schema)]);
  return Object.fromEntries(entries);
}

/** The type of a signed message: its const. */
function messageTypeOf({ body }: Operation): string {
  const schema =
    body?.kind === 'signed' ? (body.schema as { properties?: { message?: unknown } }) : undefined;
  const { properties } = (schema?.properties?.message ?? {}) as {
    properties?: { type?: { const?: string } };
  };
  return properties?.type?.const ?? 'POST';
}

interface Body {
  /** Lines before the call. */
  readonly before: readonly string[];
  /** What is imported of the client. */
  readonly names: readonly string[];
  readonly value: string;
}

/** What is declared of things that the reader has. */
function bodyOf(operation: Operation): Body | undefined {
  const { body, example } = operation;
  switch (body?.kind) {
    case undefined:
      return undefined;
    case 'signed':
      return {
        before: [
          `const { body } = signMessage({ type: ${quoted(messageTypeOf(operation))}, content }, signer);`,
        ],
        names: ['signMessage'],
        value: 'body',
      };
    case 'json':
      return { before: [], names: [], value: example?.body === undefined ? 'body' : literal(example.body) };
    case 'form':
      return { before: ['const form = new FormData();'], names: [], value: 'form' };
    case 'bytes':
      return { before: [], names: [], value: 'bytes' };
    default:
      return { before: [], names: [], value: 'body' };
  }
}

/** @param source where the operation is imported from */
export function renderCall(operation: Operation, { module, table, id }: Source): string {
  const body = bodyOf(operation);
  const [params, query] = [valuesOf(operation, 'path'), valuesOf(operation, 'query')];
  const parts = [
    ...(Object.keys(params).length > 0 ? [`params: ${indent(literal(params))},`] : []),
    ...(Object.keys(query).length > 0 ? [`query: ${indent(literal(query))},`] : []),
    ...(body ? [body.value === 'body' ? 'body,' : `body: ${indent(body.value)},`] : []),
  ];
  const input = parts.length === 0 ? '{}' : `{\n  ${parts.join('\n  ')}\n}`;
  const isReadable = Object.entries(operation.answers).every(([, form]) => isJson(form));
  const [name, result] = isReadable ? ['call', 'answer'] : ['callRaw', 'response'];
  return [
    `import { ${[name, ...(body?.names ?? [])].join(', ')} } from '@skerry/client';`,
    `import { ${table} } from '${module}';`,
    '',
    ...(body?.before ?? []),
    `const ${result} = await ${name}(url, ${table}.${id}, ${input});`,
  ].join('\n');
}
