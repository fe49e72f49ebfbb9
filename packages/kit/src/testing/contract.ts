import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createParser, type ErrorBody, isErrorCode } from '@skerry/protocol';
import {
  type AnswerForm,
  type Api,
  type Example,
  type Examples,
  errorsOf,
  isContent,
  type Operation,
  statusOf,
} from '@skerry/protocol/api/operation';
import type { TSchema } from '@skerry/protocol/type';
import fc from 'fast-check';
import { Value } from 'typebox/value';
import { addressOf } from '../contract/example.ts';
import type { HttpServer } from '../http/server.ts';
import { listUnseen } from './unseen.ts';

export type ContractRequest = Omit<Example, 'answer'>;

interface Injected {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly payload: string;
}

/** A request on its way. */
export interface Sent {
  readonly method: Operation['method'];
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload?: string;
}

export type Send = (request: Sent) => Promise<Injected>;

/** To a server of which only the address is known. @param headers go with every request */
export const overHttp =
  (baseUrl: () => string, headers: Readonly<Record<string, string>> = {}): Send =>
  async ({ method, url, headers: own, payload }) => {
    const response = await fetch(`${baseUrl()}${url}`, {
      method,
      headers: { ...headers, ...own },
      ...(payload === undefined ? {} : { body: payload }),
    });
    return {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      payload: await response.text(),
    };
  };

const ask = (send: Send, operation: Operation, asked: ContractRequest): Promise<Injected> =>
  send({
    method: operation.method,
    url: addressOf(operation, { ...asked, answer: undefined }),
    headers: asked.body === undefined ? {} : { 'content-type': 'application/json' },
    ...(asked.body === undefined ? {} : { payload: JSON.stringify(asked.body) }),
  });

/**
 * A schema whose objects have no fields but those that it names, where it names some and does not say what others are. A contract says
 * what answers have, and not what they may not have, since newer nodes add fields: but all that ours answer with is to be in it.
 */
export function closeSchema<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closeSchema) as T;
  if (typeof schema !== 'object' || schema === null) return schema;
  const parts = Object.entries(schema).map(([name, part]) => [
    name,
    name === 'allOf' ? part : closeSchema(part),
  ]);
  const isOpen =
    'properties' in schema &&
    !['additionalProperties', 'patternProperties', 'allOf'].some((name) => name in schema);
  return { ...Object.fromEntries(parts), ...(isOpen ? { additionalProperties: false } : {}) } as T;
}

const parsers = new WeakMap<TSchema, ReturnType<typeof createParser>>();

/** Made once: an operation answers hundreds of times in a test. */
function parserOf(schema: TSchema, statusCode: number): ReturnType<typeof createParser> {
  const parse = parsers.get(schema) ?? createParser(closeSchema(schema), `the answer ${statusCode}`);
  parsers.set(schema, parse);
  return parse;
}

const isJson = (headers: Injected['headers']) =>
  String(headers['content-type']).split(';', 1)[0] === 'application/json';

const schemaOf = (form: AnswerForm) => (isContent(form) ? form.content['application/json'] : form);

/** The answer is one that the contract has: a declared status with a body of its form, or a declared code under its status. */
export function checkAnswer(operation: Operation, { statusCode, headers, payload }: Injected): void {
  const type = String(headers['content-type']).split(';', 1)[0]!;
  const form = operation.answers[statusCode];
  if (type === 'application/json') {
    const body: unknown = JSON.parse(payload);
    const { code, status } = (body ?? {}) as Partial<ErrorBody>;
    const schema = form && schemaOf(form);
    if (schema && !(status === 'error' && isErrorCode(code) && statusOf(code, operation) === statusCode)) {
      parserOf(schema, statusCode)(body);
      return;
    }
    assert.ok(isErrorCode(code), `${statusCode} is not declared: ${payload.slice(0, 300)}`);
    assert.ok(errorsOf(operation).includes(code), `${code} is not declared`);
    assert.equal(statusCode, statusOf(code, operation));
    return;
  }
  assert.ok(form && isContent(form) && type in form.content, `${statusCode} is not declared as ${type}`);
}

/** Asks, and checks that what is answered is in the contract. */
export async function checkOperation(
  send: Send,
  operation: Operation,
  asked: ContractRequest = {},
): Promise<Injected> {
  const answered = await ask(send, operation, asked);
  checkAnswer(operation, answered);
  return answered;
}

const TEXTS = [
  '',
  'x',
  '0',
  '1',
  '-1',
  '1.5',
  '1e3',
  '999999999999999999',
  'true',
  'a'.repeat(300),
  '%00',
  '{}',
];
const JSON_VALUES = [null, '', 'x', 0, 1, -1, 1.5, 1e20, true, [], {}, ['x'], 'a'.repeat(300)];

type Fields = Readonly<Record<string, unknown>>;

const propertiesOf = (schema: TSchema | undefined) =>
  Object.keys((schema as { properties?: object } | undefined)?.properties ?? {});

/** Some fields of a request in another form, left out, or one too many. */
function distort(good: Fields | undefined, names: readonly string[], values: readonly unknown[]) {
  const other = fc.oneof(fc.constantFrom(...values), fc.constant(undefined));
  const field = names.length === 0 ? fc.constant('unknown') : fc.constantFrom(...names, 'unknown');
  return fc.array(fc.tuple(field, other), { maxLength: 2 }).map((changes): Fields => {
    const all: Record<string, unknown> = { ...good };
    for (const [name, value] of changes) {
      if (value === undefined) delete all[name];
      else all[name] = value;
    }
    return all;
  });
}

/** Whether text from an address fits: numbers and truth values are written as text there. */
const fitsAsText = (schema: TSchema | undefined, fields: Fields | undefined) =>
  !schema || Value.Check(schema, Value.Convert(schema, Value.Default(schema, { ...fields })));

const RUNS = 60;

function testDistorted(send: Send, id: string, operation: Operation, good: ContractRequest): void {
  const { query, body } = operation;
  const isJson = body?.kind === 'json';
  if (!query && !isJson) return;
  test(`${id}: what its schemas refuse is refused, and what is answered is declared`, async () => {
    const requests = fc.record({
      query: query ? distort(good.query, propertiesOf(query), TEXTS) : fc.constant(undefined),
      body: isJson
        ? distort(good.body as Fields, propertiesOf(body.schema), JSON_VALUES)
        : fc.constant(good.body),
    });
    await fc.assert(
      fc.asyncProperty(requests, async (distorted) => {
        const answered = await ask(send, operation, { ...good, ...(distorted as ContractRequest) });
        checkAnswer(operation, answered);
        const isRefused =
          !fitsAsText(query, distorted.query) ||
          (isJson && !Value.Check(body.schema, Value.Convert(body.schema, Value.Clone(distorted.body))));
        if (isRefused) assert.ok(answered.statusCode >= 400, `answered with ${answered.statusCode}`);
      }),
      { numRuns: RUNS },
    );
  });
}

/** What an example shows, and none of these answers has (`listUnseen`). */
export function listUnanswered(
  { answers }: Pick<Operation, 'answers'>,
  example: Example | undefined,
  answered: readonly Pick<Injected, 'statusCode' | 'headers' | 'payload'>[],
): string[] {
  const status = Math.min(...Object.keys(answers).map(Number));
  const schema = schemaOf(answers[status]!);
  const told = answered
    .filter(({ statusCode, headers }) => statusCode === status && isJson(headers))
    .map(({ payload }): unknown => JSON.parse(payload));
  return example && schema ? listUnseen(schema, example.answer, told) : [];
}

/**
 * Tests of a server against its contract: every operation is asked for, every answer has its form and what its example shows, and
 * what its schemas refuse is refused with a declared code.
 * @param requests good ones of every operation
 */
export function testContractOver<A extends Api>(
  send: Send,
  api: A,
  requests: Readonly<Record<keyof A, readonly ContractRequest[]>>,
  examples: Examples = {},
): void {
  for (const [id, operation] of Object.entries(api)) {
    const [first = {}, ...others] = requests[id] as readonly ContractRequest[];
    test(`${id}: what is answered has the form that the contract says`, async () => {
      const told: Injected[] = [];
      for (const one of [first, ...others]) {
        const answered = await ask(send, operation, one);
        told.push(answered);
        assert.ok(
          operation.answers[answered.statusCode],
          `${answered.statusCode}: ${answered.payload.slice(0, 300)}`,
        );
        checkAnswer(operation, answered);
      }
      assert.deepEqual(
        listUnanswered(operation, examples[id], told),
        [],
        'the example shows what is not answered',
      );
    });
    testDistorted(send, id, operation, first);
  }
}

/** The same of a server in this process. */
export const testContract = <A extends Api>(
  app: () => HttpServer,
  api: A,
  requests: Readonly<Record<keyof A, readonly ContractRequest[]>>,
  examples: Examples = {},
): void => testContractOver((request) => app().inject(request), api, requests, examples);

/** From where a request of a stranger comes: an address of documentation (RFC 5737). */
const STRANGER = '203.0.113.5';

/** A test: who is not exempt gets as many answers of a server in a minute as its rate says, and then 429; who is goes on. */
export function testRate(app: () => HttpServer, url: string, perMinute: number): void {
  test(`a stranger may ask ${perMinute} times a minute`, async () => {
    const ask = async (remoteAddress: string) => (await app().inject({ url, remoteAddress })).statusCode;
    for (let asked = 0; asked < perMinute; asked++) assert.notEqual(await ask(STRANGER), 429);
    assert.equal(await ask(STRANGER), 429);
    assert.notEqual(await ask('127.0.0.1'), 429);
  });
}
