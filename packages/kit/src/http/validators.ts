import type { FastifyServerOptions } from 'fastify';

type Ajv = Parameters<NonNullable<NonNullable<FastifyServerOptions['ajv']>['onCreate']>>[0];

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
      const isValid = validate(data);
      Object.assign(validateLate, { errors: validate.errors });
      return isValid;
    };
    return validateLate;
  };
  Object.assign(ajv, { compile: compileLater });
}
