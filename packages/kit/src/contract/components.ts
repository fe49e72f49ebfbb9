import { ERRORS, type ErrorCode } from '@skerry/protocol/forms';
import type { Parameter } from './parameters.ts';

const ERROR_BODY = {
  type: 'object',
  required: ['error', 'status', 'code'],
  properties: {
    error: { type: 'string', description: 'a sentence for people' },
    status: { const: 'error' },
    code: { type: 'string', enum: Object.keys(ERRORS), description: 'for programs' },
    details: { description: 'further details, if any' },
  },
};

const RETRY_AFTER = {
  'Retry-After': { description: 'seconds to wait', schema: { type: 'integer', minimum: 1 } },
};

/** Refusals that say when to come back (http/refusals.ts). */
const PASSING: readonly ErrorCode[] = ['RATE_LIMITED', 'OVERLOADED', 'DATABASE_UNAVAILABLE', 'SHUTTING_DOWN'];

/** Places of a schema that hold values, not schemas. */
const VALUES = new Set(['const', 'enum', 'default', 'example', 'examples', 'required']);

const refer = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

/** What a document says once and refers to: schemas by their title, parameters that come again, refusals by their codes. */
export class Components {
  readonly #schemas = new Map<string, object>();
  readonly #parameters = new Map<string, object>();
  readonly #responses = new Map<string, object>();
  /** Parameters that stand in more than one operation and mean one thing wherever their name stands, as text by name. */
  readonly #shared: ReadonlyMap<string, string>;

  /** @param parameters of all operations */
  constructor(parameters: readonly Parameter[]) {
    const byName = Map.groupBy(parameters, ({ name }) => name);
    const shared = [...byName].flatMap(([name, some]) => {
      const counts = Map.groupBy(some, (one) => JSON.stringify(one));
      const most = [...counts].reduce((best, one) => (one[1].length > best[1].length ? one : best));
      return most[1].length > 1 && /^[A-Za-z0-9._-]+$/.test(name) ? [[name, most[0]] as const] : [];
    });
    this.#shared = new Map(shared);
  }

  /** The schema, with a reference in the place of everything that has a title. Throws where two have the same. */
  schema(schema: object): object {
    const { title } = schema as { title?: unknown };
    if (typeof title !== 'string') return this.#inside(schema);
    const { title: _, ...rest } = schema as { title: string };
    const text = JSON.stringify(this.#inside(rest));
    const known = this.#schemas.get(title);
    if (known && JSON.stringify(known) !== text) throw new Error(`two schemas have the title ${title}`);
    this.#schemas.set(title, JSON.parse(text) as object);
    return refer('schemas', title);
  }

  #inside(schema: object): object {
    const changed = Object.entries(schema).map(([key, value]) => {
      if (VALUES.has(key) || typeof value !== 'object' || value === null) return [key, value];
      if (Array.isArray(value))
        return [key, value.map((one) => (typeof one === 'object' && one ? this.schema(one as object) : one))];
      // A map of schemas by name, whose names may be keywords.
      if (key === 'properties' || key === 'patternProperties')
        return [
          key,
          Object.fromEntries(
            Object.entries(value as Record<string, object>).map(([name, one]) => [name, this.schema(one)]),
          ),
        ];
      return [key, this.schema(value as object)];
    });
    return Object.fromEntries(changed) as object;
  }

  parameter(parameter: Parameter): object {
    const { name } = parameter;
    const text = JSON.stringify(parameter);
    if (this.#shared.get(name) !== text) return JSON.parse(text) as object;
    this.#parameters.set(name, JSON.parse(text) as object);
    return refer('parameters', name);
  }

  /** @param codes of one status */
  refusal(codes: readonly ErrorCode[]): object {
    const name = codes.join('.');
    this.#responses.set(name, {
      description: codes.map((code) => `${code}: ${ERRORS[code].meaning}`).join('. '),
      ...(codes.some((code) => PASSING.includes(code)) ? { headers: RETRY_AFTER } : {}),
      content: {
        'application/json': {
          schema: { allOf: [refer('schemas', 'ErrorBody')], properties: { code: { enum: codes } } },
        },
      },
    });
    return refer('responses', name);
  }

  /** All that was referred to, by name. */
  all(): Record<string, Record<string, object>> {
    const sorted = (some: ReadonlyMap<string, object>) =>
      Object.fromEntries([...some].sort(([one], [other]) => (one < other ? -1 : 1)));
    return {
      schemas: { ...sorted(this.#schemas), ErrorBody: ERROR_BODY },
      ...(this.#parameters.size === 0 ? {} : { parameters: sorted(this.#parameters) }),
      responses: sorted(this.#responses),
    };
  }
}
