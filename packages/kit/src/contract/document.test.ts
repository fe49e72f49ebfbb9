import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { type Api, defaulted, orNull, text } from '@skerry/protocol/api/operation';
import { Type } from '@skerry/protocol/type';
import { writeDocument } from './document.ts';
import { withExamples } from './example.ts';
import { referenceHandlers } from './reference.ts';
import { CONTENT_SECURITY_POLICY, renderReference } from './reference-page.ts';

const Thing = Type.Object({ title: Type.String(), size: Type.Integer() }, { title: 'Thing' });
const page = defaulted(Type.Integer({ minimum: 1 }), 1);
const API = {
  listThings: {
    method: 'GET',
    path: '/api/v0/things',
    summary: 'All things',
    rateClass: 'general',
    query: Type.Object({ page }, { additionalProperties: false }),
    answers: { 200: Type.Object({ things: Type.Array(Thing), best: orNull(Thing) }) },
    errors: ['INVALID_CURSOR'],
    example: { query: { page: 2 }, answer: { things: [{ title: 'a', size: 1 }], best: null } },
  },
  getThing: {
    method: 'GET',
    also: ['HEAD'],
    path: '/api/v0/things/:name/*',
    summary: 'One thing',
    params: Type.Object({
      name: Type.String({ description: 'of it' }),
      '*': Type.String({ description: 'below' }),
    }),
    query: Type.Object({ page }, { additionalProperties: false }),
    answers: { 200: Thing, 404: text('none') },
    errors: [],
  },
  makeThing: {
    method: 'POST',
    path: '/api/v0/things',
    summary: 'A new thing',
    body: { kind: 'json', schema: Thing },
    answers: { 200: Thing },
    errors: [],
  },
} as const satisfies Api;
const INFO = { title: 'Things', description: 'of all kinds' };

test('says once what comes again: schemas by their title, parameters, refusals by their codes', async () => {
  const document = writeDocument(API, INFO, { general: 7 });
  const { listThings, getThing, headThing } = Object.fromEntries(
    Object.values(document.paths)
      .flatMap((methods) => Object.values(methods))
      .map((operation) => [operation.operationId, operation]),
  );
  assert.deepEqual(Object.keys(document.paths), ['/api/v0/things', '/api/v0/things/{name}/{path}']);
  assert.deepEqual(listThings, {
    operationId: 'listThings',
    tags: ['things'],
    summary: 'All things',
    parameters: [{ $ref: '#/components/parameters/page' }],
    responses: {
      200: {
        description: 'success',
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['things', 'best'],
              properties: {
                things: { type: 'array', items: { $ref: '#/components/schemas/Thing' } },
                best: { anyOf: [{ $ref: '#/components/schemas/Thing' }, { type: 'null' }] },
              },
            },
            example: { things: [{ title: 'a', size: 1 }], best: null },
          },
        },
      },
      400: { $ref: '#/components/responses/INVALID_PARAMETERS.INVALID_CURSOR.UNKNOWN_FIELD' },
      429: { $ref: '#/components/responses/RATE_LIMITED' },
      500: { $ref: '#/components/responses/INTERNAL' },
    },
    'x-signed': false,
    'x-rate-limit': { class: 'general', per_minute: 7 },
    'x-example-request': 'GET /api/v0/things?page=2',
  });
  assert.deepEqual(Object.keys(getThing!.responses), ['200', '400', '404', '500']);
  assert.deepEqual(headThing, { ...getThing, operationId: 'headThing' });
  assert.deepEqual(Object.keys(document.components.schemas!), ['Thing', 'ErrorBody']);
  const result = await new Validator().validate(JSON.parse(JSON.stringify(document)));
  assert.deepEqual(result.errors ?? [], []);
});

test('an example that stands beside the table is shown with what is sent and what is answered', () => {
  const small = { title: 'b', size: 2 };
  const shown = withExamples(API, { makeThing: { body: small, answer: { ...small, size: 3 } } });
  const { post, get } = writeDocument(shown, INFO).paths['/api/v0/things']!;
  const schema = { $ref: '#/components/schemas/Thing' };
  assert.deepEqual(post!.requestBody, {
    required: true,
    content: { 'application/json': { schema, example: small } },
  });
  assert.deepEqual(post!.responses[200], {
    description: 'success',
    content: { 'application/json': { schema, example: { ...small, size: 3 } } },
  });
  assert.deepEqual(get, writeDocument(API, INFO).paths['/api/v0/things']!.get);
  assert.match(renderReference(shown, INFO), /POST \/api\/v0\/things\n\{\n {2}&#34;title&#34;: &#34;b&#34;/);
});

test('examples are read when a document is asked for', async () => {
  const small = { title: 'b', size: 2 };
  let readings = 0;
  const { getDocument, getReference } = referenceHandlers(API, INFO, {}, async () => {
    readings++;
    return { makeThing: { body: small, answer: small } };
  });
  assert.equal(readings, 0);
  const document = await getDocument({} as never);
  assert.match(JSON.stringify(document), /"example":\{"title":"b","size":2\}/);
  assert.equal(await getDocument({} as never), document);
  assert.match(JSON.stringify(await getReference({} as never)), /title&#34;: &#34;b/);
  assert.equal(readings, 2);
});

test('many that ask at once get one document and one page, each written once', async () => {
  const small = { title: 'b', size: 2 };
  let written = 0;
  const examples = {
    get makeThing() {
      written++;
      return { body: small, answer: small };
    },
  };
  const { getDocument, getReference } = referenceHandlers(API, INFO, {}, async () => examples);
  const ask = (handler: typeof getDocument | typeof getReference) =>
    Promise.all(Array.from({ length: 20 }, () => (handler as typeof getReference)({} as never)));
  assert.equal(new Set(await ask(getDocument)).size, 1);
  assert.equal(written, 1);
  const pages = new Set((await ask(getReference)).map((one) => JSON.stringify(one)));
  assert.deepEqual([pages.size, written], [1, 2]);
});

test('two schemas of one title are a mistake', () => {
  const other = {
    ...API.listThings,
    answers: { 200: Type.Object({ size: Type.Integer() }, { title: 'Thing' }) },
  };
  assert.throws(() => writeDocument({ ...API, other }, INFO), /two schemas have the title Thing/);
});

test('the page names every operation, code and type, runs nothing and asks nobody', () => {
  const html = renderReference(API, INFO, { general: 7 });
  for (const part of [
    'id="listThings"',
    'GET, HEAD',
    '{path}',
    'INVALID_CURSOR',
    'id="type-Thing"',
    'general, 7 a minute',
  ])
    assert.ok(html.includes(part), part);
  assert.equal(/<script|<link|<img|https?:\/\/|\son[a-z]+=/.exec(html)?.[0], undefined);
  assert.match(CONTENT_SECURITY_POLICY, /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+';/);
});

test('texts of the contract are texts on the page', () => {
  const hostile = '<script>alert(1)</script>"\'&';
  const html = renderReference(
    {
      [hostile]: {
        ...API.getThing,
        path: `/x/${hostile}`,
        summary: hostile,
        tag: hostile,
        query: Type.Object({ [hostile]: Type.String({ description: hostile }) }),
        answers: { 200: Type.Object({ [hostile]: Type.Literal(hostile) }, { title: hostile }) },
        example: { params: { name: hostile }, answer: hostile },
      },
    },
    { title: hostile, description: hostile },
  );
  assert.equal(html.includes('<script'), false);
  assert.equal(html.includes('alert(1)</'), false);
});
