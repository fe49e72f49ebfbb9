import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { createHttpServer } from '../http/server.ts';
import { ClientTable, type RateLimitOptions } from './rate-limit.ts';

describe('the last minute of a client', () => {
  test('a burst meets the promised number exactly, and counts for a minute', () => {
    const table = new ClientTable(100);
    const burst = (nowMs: number, count: number) =>
      Array.from({ length: count }, () => table.take('a', nowMs)).filter((taken) => taken.isAllowed).length;
    assert.equal(burst(0, 150), 100);
    const refused = table.take('a', 1_500);
    assert.deepEqual([refused.isAllowed, refused.retryAfterSeconds, refused.resetSeconds], [false, 59, 59]);
    assert.equal(burst(59_999, 1), 0);
    assert.equal(burst(60_000, 150), 100);
  });

  test('ten a minute, one every six seconds: none is refused', () => {
    const table = new ClientTable(10);
    for (let n = 0; n < 100; n++) assert.ok(table.take('a', n * 6_000).isAllowed, `request ${n}`);
  });

  test('the table is bounded; forgetting takes the longest silent, never who is asking', () => {
    const table = new ClientTable(2, 3);
    for (const key of ['a', 'a', 'a', 'b', 'c']) table.take(key, 0);
    assert.ok(!table.take('a', 0).isAllowed, 'a is remembered, and now the latest');
    table.take('d', 0);
    assert.equal(table.size, 3);
    assert.ok(!table.take('a', 0).isAllowed, 'b went, a stayed');
  });
});

const BASE: RateLimitOptions = {
  isEnabled: true,
  perMinute: { general: 5, authenticated: 8, heavy: 2 },
  trustedProxies: [],
  exempt: [],
  now: () => 0,
};

async function server(options: Partial<RateLimitOptions> = {}) {
  const log = createLogger('test', 'silent');
  const app = await createHttpServer({ log, corsMethods: ['GET'], limits: { ...BASE, ...options } });
  for (const rateClass of ['general', 'authenticated', 'heavy', 'unlimited'] as const)
    app.get(`/${rateClass}`, { config: { rateClass } }, async () => ({}));
  const call = async (url: string, remoteAddress = '203.0.113.5', headers: Record<string, string> = {}) =>
    app.inject({ url, remoteAddress, headers });
  const allowed = async (
    url: string,
    count: number,
    from: (n: number) => [string?, Record<string, string>?],
  ) => {
    let total = 0;
    for (let n = 0; n < count; n++) if ((await call(url, ...from(n))).statusCode !== 429) total++;
    return total;
  };
  return { app, call, allowed, [Symbol.asyncDispose]: () => app.close() };
}

test('of several processes each allows its part, as many as there are at the moment', async () => {
  let processes = 2;
  await using one = await server({ processes: () => processes });
  assert.equal(await one.allowed('/authenticated', 10, () => []), 4);
  processes = 1;
  assert.equal(await one.allowed('/authenticated', 10, () => []), 4);
  processes = 4;
  const { statusCode, headers } = await one.call('/authenticated');
  assert.deepEqual([statusCode, headers.ratelimit], [429, '"authenticated";r=0;t=60']);
  assert.equal(await one.allowed('/heavy', 5, () => ['198.51.100.7']), 1, 'one at least');
});

describe('the limit of a server', () => {
  test('each class has its own rate; the refusal says how long to wait, also to pages of other origins', async () => {
    await using one = await server();
    assert.equal(await one.allowed('/general', 9, () => []), 5);
    assert.equal(await one.allowed('/authenticated', 9, () => []), 8);
    assert.equal(await one.allowed('/heavy', 9, () => []), 2);
    assert.equal(await one.allowed('/unlimited', 50, () => []), 50);
    const refused = await one.call('/heavy', undefined, { origin: 'https://page.example' });
    assert.deepEqual(refused.json(), {
      error: 'more than 2 heavy requests a minute; try again in 60 s',
      status: 'error',
      code: 'RATE_LIMITED',
      details: { rate_class: 'heavy', per_minute: 2, retry_after: 60 },
    });
    const { headers } = refused;
    assert.deepEqual(
      [
        headers['retry-after'],
        headers['ratelimit-policy'],
        headers.ratelimit,
        headers['access-control-allow-origin'],
      ],
      ['60', '"heavy";q=2;w=60', '"heavy";r=0;t=60', '*'],
    );
    assert.equal((await one.call('/general', '203.0.113.6')).headers.ratelimit, '"general";r=4;t=60');
  });

  test('paths that do not exist count, preflights do not', async () => {
    await using one = await server();
    assert.equal(await one.allowed('/none', 9, () => []), 5);
    for (let n = 0; n < 9; n++) {
      const preflight = await one.app.inject({
        method: 'OPTIONS',
        url: '/general',
        headers: { origin: 'https://page.example', 'access-control-request-method': 'GET' },
      });
      assert.equal(preflight.statusCode, 204);
    }
  });

  test('a client is an IPv4 address in either spelling, or the /64 of an IPv6 one', async () => {
    await using one = await server();
    assert.equal(await one.allowed('/general', 9, (n) => [`2001:db8:1:2::${n}`]), 5);
    assert.equal(await one.allowed('/general', 9, (n) => [`2001:db8:1:${n + 10}::1`]), 9);
    assert.equal(
      await one.allowed('/general', 9, (n) => [n % 2 ? '198.51.100.9' : '::ffff:198.51.100.9']),
      5,
    );
  });

  test('X-Forwarded-For of a stranger has no effect; of a trusted proxy it names the client', async () => {
    await using one = await server({ trustedProxies: ['10.0.0.0/8'] });
    const spoof = (n: number) => ({ 'x-forwarded-for': `198.51.100.${n}` });
    assert.equal(await one.allowed('/general', 9, (n) => ['203.0.113.5', spoof(n)]), 5);
    assert.equal(await one.allowed('/general', 9, (n) => ['10.0.0.1', spoof(n)]), 9);
    const same = (n: number) => ({ 'x-forwarded-for': `198.51.100.${n}, 203.0.113.77` });
    assert.equal(await one.allowed('/general', 9, (n) => ['10.0.0.1', same(n)]), 5);
  });

  test('exempt clients are not limited, unless somebody hides behind them', async () => {
    await using one = await server({ exempt: ['127.0.0.0/8', '::1'] });
    assert.equal(await one.allowed('/general', 30, () => ['127.0.0.1']), 30);
    assert.equal(await one.allowed('/general', 30, () => ['::1']), 30);
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via']) {
      await using other = await server({ exempt: ['127.0.0.0/8', '::1'] });
      assert.equal(
        await other.allowed('/general', 9, (n) => ['127.0.0.1', { [name]: `127.0.0.${n}` }]),
        5,
        name,
      );
    }
    await using proxied = await server({ exempt: ['127.0.0.0/8'], trustedProxies: ['127.0.0.1'] });
    const through = { 'x-forwarded-for': '127.0.0.1, 198.51.100.1' };
    assert.equal(await proxied.allowed('/general', 9, () => ['127.0.0.1', through]), 5);
  });

  test('turned off, nothing is counted; a route without a class cannot be registered', async () => {
    await using one = await server({ isEnabled: false });
    assert.equal(await one.allowed('/heavy', 30, () => []), 30);
    await using other = await server();
    assert.throws(() => other.app.get('/bare', async () => ({})), /GET \/bare has no config.rateClass/);
  });
});
