import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Operation } from '@skerry/protocol/api/operation';
import { Type } from '@skerry/protocol/type';
import { checkAnswer } from './contract.ts';

const Part = Type.Object({ name: Type.String() });
const OPERATION: Operation = {
  method: 'GET',
  path: '/things',
  summary: 'Things',
  rateClass: 'general',
  answers: {
    200: Type.Object({
      parts: Type.Array(Type.Union([Part, Type.Null()])),
      all: Type.Record(Type.String(), Type.Number()),
    }),
  },
  errors: [],
};

test('an answer with a field that the contract does not name is told, at any depth; where it names none, all are taken', () => {
  const check = (body: object) =>
    checkAnswer(OPERATION, {
      statusCode: 200,
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(body),
    } as Parameters<typeof checkAnswer>[1]);
  check({ parts: [{ name: 'a' }, null], all: { any: 1, other: 2 } });
  assert.throws(() => check({ parts: [], all: {}, more: 1 }), /more/);
  assert.throws(() => check({ parts: [{ name: 'a', more: 1 }], all: {} }), {
    code: /INVALID_CONTENT|UNKNOWN_FIELD/,
  });
});
