import type { FastifyServerOptions } from 'fastify';

type Ajv = Parameters<NonNullable<NonNullable<FastifyServerOptions['ajv']>['onCreate']>>[0];

/**
 * Where a number is that is none, as a JSON pointer. Ajv makes one of text such as `1e309`, and then passes over every rule
 * that its schema has for numbers.
 */
function findInfinite(data: unknown): string | undefined {
  // Not by recursion: a stranger's body may be as deep as it is long.
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
 * what its HTTP server costs to start. For Fastify's `ajv.onCreate`.
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
