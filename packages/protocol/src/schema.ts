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
    const excess = findExcess(schema as Bounds, value);
    if (excess) throw describeMismatch(what, code, [excess], schema);
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
/** Fields that a schema does not know: an object with more of them is not looked into. */
const UNKNOWN_MAX = 64;
/** The same of a list that may have any length. */
const ITEMS_MAX = 10_000;

/** What of a schema says how much of a value there may be. */
interface Bounds {
  readonly type?: string;
  readonly anyOf?: readonly Bounds[];
  readonly items?: Bounds;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Bounds>>;
  readonly additionalProperties?: unknown;
  readonly maxProperties?: number;
}

const kindOf = (value: unknown) => (Array.isArray(value) ? 'array' : typeof value);

/** A list that is too long, or holds one that is. */
function findExcessOfList(
  { items, maxItems }: Bounds,
  list: readonly unknown[],
  at: string,
): SchemaError | undefined {
  const limit = maxItems ?? ITEMS_MAX;
  if (list.length > limit) {
    const message =
      maxItems === undefined
        ? `has ${list.length} items, and what is wrong with them is not looked for among so many`
        : `must not have more than ${limit} items`;
    return { keyword: 'maxItems', instancePath: at, message, params: { limit } };
  }
  if (!items) return undefined;
  for (const [index, item] of list.entries()) {
    const excess = findExcess(items, item, `${at}/${index}`);
    if (excess) return excess;
  }
  return undefined;
}

/** An object with too many fields, or one that holds what is too much. */
function findExcessOfFields(
  { properties, additionalProperties, maxProperties }: Bounds,
  fields: Readonly<Record<string, unknown>>,
  at: string,
): SchemaError | undefined {
  const names = Object.keys(fields);
  if (maxProperties !== undefined && names.length > maxProperties) {
    const message = `must not have more than ${maxProperties} properties`;
    return { keyword: 'maxProperties', instancePath: at, message, params: { limit: maxProperties } };
  }
  const known = properties ?? {};
  if (additionalProperties === false) {
    const unknown = names.filter((name) => !Object.hasOwn(known, name));
    if (unknown.length > UNKNOWN_MAX)
      return {
        keyword: 'additionalProperties',
        instancePath: at,
        message: 'must not have additional properties',
        params: { additionalProperties: unknown },
      };
  }
  for (const name of Object.keys(known)) {
    const excess = Object.hasOwn(fields, name) && findExcess(known[name]!, fields[name], `${at}/${name}`);
    if (excess) return excess;
  }
  return undefined;
}

/**
 * Where a value has more than its schema has room for. TypeBox goes on through all of it to say what is wrong, keeps something for
 * each item that is, and copies the list of repeated ones for every further one: a megabyte of ones takes it minutes.
 */
function findExcess(bounds: Bounds, value: unknown, at = ''): SchemaError | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (bounds.anyOf) {
    const meant = bounds.anyOf.filter(({ type, anyOf }) => anyOf || type === kindOf(value));
    const found = meant.map((one) => findExcess(one, value, at));
    return found.includes(undefined) ? undefined : found[0];
  }
  if (bounds.type !== kindOf(value)) return undefined;
  return Array.isArray(value)
    ? findExcessOfList(bounds, value, at)
    : findExcessOfFields(bounds, value as Readonly<Record<string, unknown>>, at);
}

/** `/firewall/allowedPorts/0` -> `firewall.allowedPorts.0` */
const dotted = (pointer: string) => pointer.slice(1).replaceAll('/', '.');

/** TypeBox names all of the fields, Ajv (in HTTP queries) the first one. */
function namesOf(params: SchemaError['params'], many: string, one: string): string[] {
  return (params[many] as string[] | undefined) ?? (params[one] === undefined ? [] : [String(params[one])]);
}

interface Place {
  readonly properties?: Readonly<Record<string, Place>>;
  readonly items?: Place;
  readonly description?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
}

/** What a schema says of a place of a value. */
function placeAt(schema: object, pointer: string): Place | undefined {
  let at: Place | undefined = schema;
  for (const part of pointer.split('/').slice(1)) at = at?.properties?.[part] ?? at?.items;
  return at;
}

/** The fields of the object at a place of a schema, where that place is one. */
const fieldsAt = (schema: object, pointer: string) => Object.keys(placeAt(schema, pointer)?.properties ?? {});

const placeOf = (error: SchemaError, schema: object | undefined): Place =>
  error.parentSchema ?? placeAt(schema ?? {}, error.instancePath) ?? {};

const NUMBERS: Readonly<Record<string, string>> = { integer: 'an integer', number: 'a number' };

/** Of a type or a bound, in the validators' words; others have more to say. */
const SAID_BY_VALIDATOR = /^must be (?:integer|number|boolean|[<>]=)/;

/** What a number or a boolean may be, all of it: a client that is told one bound at a time asks twice. */
function boundsOf(error: SchemaError, schema: object | undefined): string | undefined {
  if (!SAID_BY_VALIDATOR.test(error.message)) return undefined;
  const { type = '', enum: values, minimum, maximum } = placeOf(error, schema);
  if (type === 'boolean') return 'must be true or false';
  const kind = NUMBERS[type];
  if (!kind) return undefined;
  if (values) return `must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`;
  if (minimum !== undefined && maximum !== undefined) return `must be ${kind} from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return `must be ${kind}, at least ${minimum}`;
  return maximum === undefined ? `must be ${kind}` : `must be ${kind}, at most ${maximum}`;
}

/** Who sends milliseconds, a fraction or a calendar date has to be told in what a date is counted: a bound alone tells nothing. */
function unitOf(error: SchemaError, schema: object | undefined): string {
  const { description } = placeOf(error, schema);
  const unit = description?.match(/Unix (?:milli)?seconds/)?.[0];
  if (unit === 'Unix seconds' && error.keyword === 'maximum') return ` (${unit}, not milliseconds)`;
  return unit ? ` (${unit})` : '';
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
    const told = names.slice(0, MAX_REPORTED).map((name) => JSON.stringify(name));
    const others = names.length > told.length ? ` and ${names.length - told.length} others` : '';
    return `${field ? `${what}.${field}` : what} has no field ${told.join(', ')}${others}${allowed}`;
  }
  const values = allowedAt(errors, error.instancePath);
  if (values.length > 0 && ['const', 'enum', 'anyOf'].includes(error.keyword))
    return `${field ? `${what}.${field}` : what} must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`;
  if (error.keyword === 'required') {
    const names = namesOf(error.params, 'requiredProperties', 'missingProperty');
    return `${field ? `${what}.${field}` : what} lacks ${names.map((name) => JSON.stringify(name)).join(', ')}`;
  }
  return `${field ? `${what}.${field}` : what} ${boundsOf(error, schema) ?? error.message}${unitOf(error, schema)}`;
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
