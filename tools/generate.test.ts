import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GENERATED, readGenerated } from './generate.ts';

for (const [path, make] of Object.entries(GENERATED)) {
  test(`${path} is what the code says (npm run generate)`, async () => {
    assert.equal(readGenerated(path), await make());
  });
}
