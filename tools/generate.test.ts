import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { ERRORS, type ErrorCode } from '@skerry/protocol';
import { GENERATED, readGenerated } from './generate.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
}

interface PathsDocument {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { parameters?: readonly (Parameter | { $ref: string })[] }>>>
  >;
  readonly components: { readonly parameters?: Readonly<Record<string, Parameter>> };
}

for (const [path, make] of Object.entries(GENERATED)) {
  test(`${path} is what the code says (npm run generate)`, async () => {
    assert.equal(readGenerated(path), await make());
  });
}

for (const [path, make] of Object.entries(GENERATED).filter(([path]) => path.includes('openapi'))) {
  test(`${path} is valid OpenAPI 3.1, and every operation has an id of its own`, async () => {
    const document = JSON.parse(await make()) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    assert.equal(new Set(ids).size, ids.length);
    const validator = new Validator();
    const { errors = [] } = await validator.validate(document);
    assert.deepEqual([errors, validator.version], [[], '3.1']);
  });

  // The schema of OpenAPI lets any text pass here; generators of clients make a variable of it.
  test(`${path} has a parameter for each name in a path, and each could be that of a variable`, async () => {
    const { paths, components } = JSON.parse(await make()) as PathsDocument;
    for (const [url, methods] of Object.entries(paths))
      for (const [method, { parameters = [] }] of Object.entries(methods)) {
        const told = parameters
          .map((one) => ('$ref' in one ? components.parameters![one.$ref.split('/').at(-1)!]! : one))
          .filter((one) => one.in === 'path')
          .map(({ name }) => name);
        assert.deepEqual(
          [...url.matchAll(/\{([A-Za-z_]\w*)\}/g)].map(([, name]) => name).sort(),
          told.sort(),
          `${method} ${url}`,
        );
      }
  });
}

test('docs/errors.md names the one exception to its statuses that a route makes', async () => {
  type Operation = { responses: Record<string, { $ref?: string }> };
  const odd = Object.keys(GENERATED)
    .filter((path) => path.includes('openapi'))
    .flatMap((path) => {
      const { paths } = JSON.parse(readGenerated(path) ?? '') as {
        paths: Record<string, Record<string, Operation>>;
      };
      return Object.values(paths).flatMap((methods) =>
        Object.values(methods).flatMap(({ responses }) => Object.entries(responses)),
      );
    })
    .flatMap(
      ([status, { $ref = '' }]) =>
        /responses\/(.*)/
          .exec($ref)?.[1]
          ?.split('.')
          .map((code) => ({ status: Number(status), code })) ?? [],
    )
    .filter(({ status, code }) => ERRORS[code as ErrorCode].httpStatus !== status)
    .map(({ status, code }) => `${status} where the table says ${ERRORS[code as ErrorCode].httpStatus}`);
  const [exception, ...others] = new Set(odd);
  assert.deepEqual(others, []);
  assert.match(readGenerated('docs/errors.md') ?? '', new RegExp(exception ?? 'no exception'));
});
