import type { FastifyServerOptions } from 'fastify';

type Validation = NonNullable<FastifyServerOptions['ajv']>;
type Ajv = Parameters<NonNullable<Validation['onCreate']>>[0];

/**
 * Where a number is that is none, as a JSON pointer. Ajv makes one of text such as `1e309`, and then passes over every rule
 * that its schema has for numbers.
 */
function findInfinite(data: unknown): string | undefined {
  const open: [unknown, string][] = [[data, '']];
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, pointer] = next;
    if (typeof value === 'number' && !Number.isFinite(value)) return pointer;
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, part] of Object.entries(value)) open.push([part, `${pointer}/${name}`]);
  }
  return undefined;
}

const infiniteAt = (instancePath: string) => ({
  keyword: 'type',
  instancePath,
  schemaPath: '#/type',
  params: {},
  message: 'must be a finite number',
});

/**
 * Schemas are compiled when a request first needs them: a core node has some hundred, and compiling them all is most of
 * what its HTTP server costs to start.
 */
export function compileOnDemand(ajv: Ajv): void {
  const compile = ajv.compile.bind(ajv);
  const compileLater = (schema: object) => {
    let validate: ReturnType<typeof compile> | undefined;
    const validateLate = (data: unknown): unknown => {
      validate ??= compile(schema);
      const isOfSchema = validate(data);
      const infinite = isOfSchema ? findInfinite(data) : undefined;
      const errors = infinite === undefined ? validate.errors : [infiniteAt(infinite)];
      Object.assign(validateLate, { errors });
      return isOfSchema && infinite === undefined;
    };
    return validateLate;
  };
  Object.assign(ajv, { compile: compileLater });
}

/** Strict: nothing is dropped in silence; text of a query may become the number that it is. */
export const VALIDATION: Validation = {
  customOptions: {
    removeAdditional: false,
    coerceTypes: true,
    useDefaults: true,
    allErrors: false,
    // An error knows its schema, and names what is allowed.
    verbose: true,
    // They are ours, and tests check the documents that they are all in: to compile what checks schemas takes longer than all else.
    validateSchema: false,
  },
  onCreate: compileOnDemand,
};
