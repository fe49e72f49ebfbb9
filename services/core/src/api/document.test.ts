import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { renderReference, withExamples } from '@skerry/kit';
import { isErrorCode } from '@skerry/protocol';
import { CORE_API } from '@skerry/protocol/api/core/index';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';
import { type Api, statusOf } from '@skerry/protocol/api/operation';
import { describeApi } from '../describe.ts';
import { operationsOf } from '../testing/contract/operations.ts';
import { INFO } from './api.ts';

const document = await describeApi();
const operations = operationsOf(document);
/** Errors that have a body of their own: what became of a message, and what of the node is ill. */
const SAID_OTHERWISE = [
  'POST /api/v0/messages 422',
  'POST /api/v0/p2p/pubsub/pub 422',
  'POST /api/v0/ipfs/pubsub/pub 422',
  'GET /health 503',
  'GET /api/v0/health 503',
];
const none = (problems: string[]) => assert.deepEqual(problems, []);

describe('the API document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const result = await validator.validate(JSON.parse(JSON.stringify(document)));
    assert.deepEqual(result.errors ?? [], []);
    assert.deepEqual([result.valid, validator.version], [true, '3.1']);
  });

  test('every operation has an id of its own, a tag, a summary, a rate class', () => {
    const ids = operations.map(({ operationId }) => operationId);
    assert.equal(new Set(ids).size, operations.length);
    none(
      operations
        .filter(
          (operation) => !operation.summary || !operation.tags.length || !operation['x-rate-limit'].class,
        )
        .map(({ name }) => name),
    );
  });

  test('every parameter is described, every 200 has a schema, every signed operation its body', () => {
    none(
      operations.flatMap(({ name, ...operation }) => [
        ...operation.parameters
          .filter(({ description }) => !description)
          .map((parameter) => `${name}: ${parameter.name} is not described`),
        ...('101' in operation.responses ||
        Object.values(operation.responses['200']?.content ?? {}).some((one) => 'schema' in one)
          ? []
          : [`${name}: 200 has no schema`]),
        ...(operation['x-signed'] && !operation.requestBody ? [`${name}: no body`] : []),
      ]),
    );
  });

  test('every error has the common body with the codes that are possible there, under their own status', () => {
    const asked: Api = CORE_API;
    const otherwise: string[] = [];
    const contractOf = (id: string) => asked[id] ?? asked[id.replace(/^head/, 'get')];
    for (const { name, ...operation } of operations) {
      for (const [status, response] of Object.entries(operation.responses)) {
        const json = response.content?.['application/json'] as
          | { schema?: { allOf?: { $ref: string }[]; properties?: { code?: { enum: string[] } } } }
          | undefined;
        if (Number(status) < 400) continue;
        if (!json?.schema?.allOf) {
          otherwise.push(`${name} ${status}`);
          continue;
        }
        assert.equal(json.schema.allOf[0]!.$ref, '#/components/schemas/ErrorBody');
        const codes = json.schema.properties!.code!.enum;
        for (const code of codes)
          assert.equal(
            isErrorCode(code) && statusOf(code, contractOf(operation.operationId)),
            Number(status),
            `${name} ${code}`,
          );
      }
      const isLimited = operation['x-rate-limit'].class !== 'unlimited';
      assert.equal('429' in operation.responses, isLimited, name);
    }
    assert.deepEqual(otherwise, SAID_OTHERWISE);
  });

  test('the rates are those of the specification', () => {
    const rate = (path: string, method: string) => document.paths[path]![method]!['x-rate-limit'];
    assert.deepEqual(rate('/api/v0/messages', 'get'), { class: 'general', per_minute: 100 });
    assert.deepEqual(rate('/api/v0/messages', 'post'), { class: 'authenticated', per_minute: 300 });
    assert.deepEqual(rate('/health', 'get'), { class: 'unlimited', per_minute: null });
  });
});

test('the page names every operation, runs nothing and asks nobody', () => {
  const page = renderReference(withExamples(CORE_API, CORE_EXAMPLES), INFO, {});
  const isNamed = ({ operationId, method }: (typeof operations)[number]) =>
    method === 'head' || page.includes(operationId);
  none(operations.filter((one) => !isNamed(one)).map(({ name }) => name));
  assert.equal(/<script|<link|<img|\son[a-z]+=/.exec(page)?.[0], undefined);
});
