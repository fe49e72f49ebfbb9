import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fastify } from 'fastify';
import { compileOnDemand } from './validators.ts';

test('a schema is compiled by the first request that needs it, once, and judges every request', async () => {
  const compiled: unknown[] = [];
  const app = fastify({
    ajv: {
      onCreate: (ajv) => {
        const compile = ajv.compile.bind(ajv);
        Object.assign(ajv, {
          compile: (schema: object) => {
            compiled.push(schema);
            return compile(schema);
          },
        });
        compileOnDemand(ajv);
      },
    },
  });
  const schemaOf = (name: string) => ({
    type: 'object',
    properties: { [name]: { type: 'integer', maximum: 9 } },
  });
  for (const name of ['a', 'b'])
    app.get(`/${name}`, { schema: { querystring: schemaOf(name) } }, async ({ query }) => query);
  await app.ready();
  assert.equal(compiled.length, 0);
  assert.equal((await app.inject('/a?a=x')).json().message, 'querystring/a must be integer');
  assert.deepEqual((await app.inject('/a?a=1')).json(), { a: 1 });
  assert.equal((await app.inject('/a?a=y')).statusCode, 400);
  for (const text of ['1e309', '-1e309', 'Infinity'])
    assert.equal((await app.inject(`/a?a=${text}`)).json().message, 'querystring/a must be a finite number');
  assert.equal(compiled.length, 1);
  await app.close();
});

test('a number that is none is found however deep a body is', async () => {
  const app = fastify({ ajv: { onCreate: compileOnDemand } });
  app.post('/', { schema: { body: {} } }, async () => 'taken');
  const post = (innermost: string) => {
    const depth = 100_000;
    const payload = `${'['.repeat(depth)}${innermost}${']'.repeat(depth)}`;
    return app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload });
  };
  assert.equal((await post('1')).statusCode, 200);
  assert.equal((await post('1e309')).statusCode, 400);
  await app.close();
});
