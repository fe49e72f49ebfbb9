import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { GENERATED, readGenerated } from './generate.ts';

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
}
