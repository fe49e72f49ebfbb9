import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Api, text } from '@skerry/protocol/api/operation';
import { COMPARED, compareRoutes, findContradictions } from './page.ts';

const operation = { summary: 'a thing', answers: { 200: text('it') }, errors: [] } as const;
const API: Api = {
  getOne: { method: 'GET', path: '/one/:name', ...operation, deployed: { differs: 'a little' } },
  getOther: { method: 'GET', path: '/other', ...operation, deployed: { route: 'GET /elsewhere/{name}' } },
  getOwn: { method: 'GET', path: '/own', ...operation },
};

test('a route is answered by the operation with its method and path, or by the one that names it', () => {
  const routes = [{ route: 'GET /one/{}' }, { route: 'GET /elsewhere/{}' }, { route: 'POST /one/{}' }];
  assert.deepEqual(
    compareRoutes(routes, API).map(({ isAnswered, note }) => [isAnswered, note]),
    [
      [true, 'a little'],
      [true, ''],
      [false, ''],
    ],
  );
});

test('what the list and the contract say about each other is held against them', () => {
  assert.deepEqual(
    findContradictions(
      [{ route: 'GET /one/{}' }, { route: 'GET /gone' }, { route: 'GET /left', absent: 'x' }],
      API,
    ),
    [
      'GET /gone is not answered, and nothing says why',
      'getOther claims GET /elsewhere/{}, which deployed nodes do not have',
    ],
  );
});

test('every deployed route is answered, or it is said why not', () => {
  assert.deepEqual(
    COMPARED.flatMap(([routes, api]) => findContradictions(routes, api)),
    [],
  );
});
