import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestCore } from '../testing/core.ts';

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'accept-encoding': 'gzip, br' };

test('the console at the door of the core node', async (t) => {
  await using core = await createTestCore();
  const inject = (
    url: string,
    headers: Record<string, string> = {},
    method: 'GET' | 'HEAD' | 'POST' = 'GET',
  ) => core.api.inject({ url, headers, method });

  await t.test('a program that asks for / is told what this is, in JSON', async () => {
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
      const { statusCode, body } = await inject('/', headers);
      assert.deepEqual([statusCode, JSON.parse(body).documents.reference], [200, '/api/v0/docs']);
    }
    assert.equal(JSON.parse((await inject('/', BROWSER, 'POST')).body).code, 'METHOD_NOT_ALLOWED');
  });

  await t.test('a browser gets the page, whole or packed, and may run nothing but its scripts', async () => {
    const { statusCode, headers, body } = await inject('/?core=http://127.0.0.1:1', { accept: 'text/html' });
    assert.equal(statusCode, 200);
    assert.match(body, /<title>Skerry console<\/title>/);
    assert.match(String(headers['content-security-policy']), /script-src 'self';.*frame-ancestors 'none'/);
    assert.deepEqual(
      ['x-content-type-options', 'referrer-policy', 'cache-control'].map((name) => headers[name]),
      ['nosniff', 'no-referrer', 'no-cache'],
    );
    const packed = await inject('/', BROWSER);
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert.deepEqual([...packed.rawPayload.subarray(0, 2)], [0x1f, 0x8b]);
    const head = await inject('/', BROWSER, 'HEAD');
    assert.deepEqual([head.statusCode, head.body], [200, '']);
  });

  await t.test('its files are kept for good under their names; what is no file is no route', async () => {
    const page = (await inject('/', { accept: 'text/html' })).body;
    const [, script] = /src="([^"]*\.js)"/.exec(page)!;
    const { statusCode, headers } = await inject(`/${script}`);
    assert.equal(statusCode, 200);
    assert.match(String(headers['content-type']), /^text\/javascript/);
    assert.match(String(headers['cache-control']), /immutable/);
    const missing = await inject('/console/../package.json');
    assert.deepEqual([missing.statusCode, JSON.parse(missing.body).code], [404, 'ROUTE_NOT_FOUND']);
  });
});
