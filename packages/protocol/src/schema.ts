import { compile } from '#compiler';
import type { Validator } from './compiler/compiler.ts';
import { AppError, type ErrorCode } from './errors.ts';
import type { Static, TSchema } from './type.ts';

/** A schema's validator, compiled when it is first needed: a process uses few of the hundreds that it knows. */
function compileLate(schema: TSchema) {
  let compiled: Validator | undefined;
  return () => {
    compiled ??= compile(schema);
    return compiled;
  };
}

/** Whether a value has the schema's form. */
export function createCheck<T extends TSchema>(schema: T): (value: unknown) => value is Static<T> {
  const validator = compileLate(schema);
  return (value): value is Static<T> => validator().Check(value);
}

/** A schema's validator that throws our errors: which field, what was expected. */
export function createParser<T extends TSchema>(
  schema: T,
  what: string,
  code: ErrorCode = 'INVALID_CONTENT',
): (value: unknown) => Static<T> {
  const validator = compileLate(schema);
  return (value) => {
    if (validator().Check(value)) return value as Static<T>;
    const [, errors] = validator().Errors(value);
    throw describeMismatch(what, code, errors as SchemaError[], schema);
  };
}

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Ajv's, where it is told to be verbose. */
  readonly parentSchema?: object;
}

const MAX_REPORTED = 8;

/** `/firewall/allowedPorts/0` -> `firewall.allowedPorts.0` */
const dotted = (pointer: string) => pointer.slice(1).replaceAll('/', '.');

/** TypeBox names all of the fields, Ajv (in HTTP queries) the first one. */
function namesOf(params: SchemaError['params'], many: string, one: string): string[] {
  return (params[many] as string[] | undefined) ?? (params[one] === undefined ? [] : [String(params[one])]);
}

/** The fields of the object at a place of a schema, where that place is one. */
function fieldsAt(schema: object, pointer: string): string[] {
  let at = schema as { properties?: Record<string, object>; items?: object } | undefined;
  for (const part of pointer.split('/').slice(1)) at = at?.properties?.[part] ?? at?.items;
  return Object.keys(at?.properties ?? {});
}

/** Values that would do, of a field that has alternatives: each alternative is an error of its own. */
function allowedAt(errors: readonly SchemaError[], pointer: string): unknown[] {
  const said = errors
    .filter(
      ({ instancePath, keyword }) => instancePath === pointer && (keyword === 'const' || keyword === 'enum'),
    )
    .flatMap(({ params }) => (params.allowedValues as unknown[] | undefined) ?? [params.allowedValue]);
  return [...new Set(said)];
}

function sentenceOf(
  what: string,
  error: SchemaError,
  errors: readonly SchemaError[],
  schema: object | undefined,
): string {
  const field = dotted(error.instancePath);
  if (error.keyword === 'additionalProperties') {
    const names = namesOf(error.params, 'additionalProperties', 'additionalProperty');
    const known = error.parentSchema
      ? fieldsAt(error.parentSchema, '')
      : fieldsAt(schema ?? {}, error.instancePath);
    const allowed = known.length > 0 ? `; fields: ${known.join(', ')}` : '';
    return `${field ? `${what}.${field}` : what} has no field ${names.map((name) => JSON.stringify(name)).join(', ')}${allowed}`;
  }
  const values = allowedAt(errors, error.instancePath);
  if (values.length > 0 && ['const', 'enum', 'anyOf'].includes(error.keyword))
    return `${field ? `${what}.${field}` : what} must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`;
  if (error.keyword === 'required') {
    const names = namesOf(error.params, 'requiredProperties', 'missingProperty');
    return `${field ? `${what}.${field}` : what} lacks ${names.map((name) => JSON.stringify(name)).join(', ')}`;
  }
  return `${field ? `${what}.${field}` : what} ${error.message}`;
}

/** What is wrong comes before what is too much: a value that lacks a field is not one with unknown fields. */
export function describeMismatch(
  what: string,
  code: ErrorCode,
  errors: readonly SchemaError[],
  schema?: object,
): AppError {
  const isUnknown = ({ keyword }: SchemaError) => keyword === 'additionalProperties';
  const real = errors.filter((error) => error.keyword !== 'boolean');
  const told = real.length > 0 ? real : errors;
  const sorted = [...told.filter((error) => !isUnknown(error)), ...told.filter(isUnknown)];
  const sentences = [...new Set(sorted.map((error) => sentenceOf(what, error, errors, schema)))];
  const unknown = told.length > 0 && told.every(isUnknown);
  return new AppError(unknown ? 'UNKNOWN_FIELD' : code, sentences[0] ?? `${what} has the wrong form`, {
    details: { errors: sentences.slice(0, MAX_REPORTED) },
  });
}
