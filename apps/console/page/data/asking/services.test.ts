import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serving } from '@skerry/kit/testing/serving';
import { askServices } from './services.ts';

// What a browser has.
Object.defineProperty(globalThis, 'location', { value: { href: 'http://127.0.0.1/' } });
Object.defineProperty(navigator, 'onLine', { value: true });

const { signal } = new AbortController();
const service = (id: number, permalink: string, online: boolean, success: string | null) => ({
  ...{ id, permalink, online, name: permalink, group_id: 2, last_success: success },
  ...{ online_24_hours: 1, online_7_days: 1, latency: 1, last_error: null, issue: null },
});
const SEEN = '2026-01-02T03:04:05.000Z';
const ALL = [
  service(1, 'core', false, null),
  service(2, 'compute-a', false, null),
  service(3, 'compute-b', true, SEEN),
  service(4, 'compute-c', false, SEEN),
];

/** A status service. @param refuses the code with which it refuses parameters */
const serveList = (refuses: string) =>
  serving((request, response) => {
    const isRefused = request.url!.includes('?');
    response.statusCode = isRefused ? 400 : 200;
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify(isRefused ? { error: 'unknown parameter', code: refuses, details: null } : ALL),
    );
  });

test('a status service of an older release, which gives all or nothing, is read all the same', async () => {
  await using served = await serveList('INVALID_PARAMETERS');
  const idsOf = async (query: string) =>
    (await askServices(`${served.url}/api/services${query}`, signal)).map(({ id }) => id);
  assert.deepEqual(await idsOf('?heard=true&limit=2'), [1, 3]);
  assert.deepEqual(await idsOf('?heard=true&online=false&limit=100'), [1, 4]);
  assert.deepEqual(await idsOf('?permalink=compute-a'), [2]);
  assert.deepEqual(await idsOf(''), [1, 2, 3, 4]);
});

test('any other refusal is told', async () => {
  await using served = await serveList('RATE_LIMITED');
  await assert.rejects(askServices(`${served.url}/api/services?limit=2`, signal), { code: 'RATE_LIMITED' });
});
