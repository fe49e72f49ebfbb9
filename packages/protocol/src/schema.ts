import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { AppError, type ErrorCode } from './errors.ts';

/** A schema's validator that throws our errors: which field, what was expected. */
export function createParser<T extends TSchema>(
  schema: T,
  what: string,
  code: ErrorCode = 'INVALID_CONTENT',
): (value: unknown) => Static<T> {
  const validator = Compile(schema);
  return (value) => {
    if (validator.Check(value)) return value as Static<T>;
    throw describeMismatch(what, code, validator.Errors(value) as SchemaError[]);
  };
}

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const MAX_REPORTED = 8;

/** `/firewall/allowedPorts/0` -> `firewall.allowedPorts.0` */
const dotted = (pointer: string) => pointer.slice(1).replaceAll('/', '.');

/** TypeBox names all of the fields, Ajv (in HTTP queries) the first one. */
function namesOf(params: SchemaError['params'], many: string, one: string): string[] {
  return (params[many] as string[] | undefined) ?? (params[one] === undefined ? [] : [String(params[one])]);
}

function sentenceOf(what: string, error: SchemaError): string {
  const field = dotted(error.instancePath);
  if (error.keyword === 'additionalProperties') {
    const names = namesOf(error.params, 'additionalProperties', 'additionalProperty');
    return `${field ? `${what}.${field}` : what} has no field ${names.map((name) => JSON.stringify(name)).join(', ')}`;
  }
  if (error.keyword === 'required') {
    const names = namesOf(error.params, 'requiredProperties', 'missingProperty');
    return `${field ? `${what}.${field}` : what} lacks ${names.map((name) => JSON.stringify(name)).join(', ')}`;
  }
  if (error.keyword === 'enum') {
    const values = (error.params.allowedValues as unknown[] | undefined) ?? [];
    return `${field ? `${what}.${field}` : what} must be one of ${values.join(', ')}`;
  }
  return `${field ? `${what}.${field}` : what} ${error.message}`;
}

export function describeMismatch(what: string, code: ErrorCode, errors: readonly SchemaError[]): AppError {
  const real = errors.filter((error) => error.keyword !== 'boolean');
  const sentences = [...new Set((real.length > 0 ? real : errors).map((error) => sentenceOf(what, error)))];
  const unknown = errors.some((error) => error.keyword === 'additionalProperties');
  return new AppError(unknown ? 'UNKNOWN_FIELD' : code, sentences[0] ?? `${what} has the wrong form`, {
    details: { errors: sentences.slice(0, MAX_REPORTED) },
  });
}
