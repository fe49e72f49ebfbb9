import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger, createReach, readConfig } from '@skerry/kit';
import { AppError, createParser } from '@skerry/protocol';
import Type from 'typebox';
import { checkService } from './check.ts';
import { CONTENT_SECURITY_POLICY, renderPage } from './http/page.ts';
import { FailureView, ServicesView, type ServiceView, UptimeView } from './http/views.ts';
import { describeApi, statusService } from './index.ts';
import { computeTarget } from './registry.ts';

const never = new AbortController().signal;

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('a check ends in time, whatever it meets, and goes nowhere else', async () => {
  let visited = false;
  await using elsewhere = await serve((_, response) => {
    visited = true;
    response.end();
  });
  const options = { mayReach: createReach(true), timeoutMs: 200, signal: never };
  const cases: [RequestListener, RegExp | null][] = [
    [(_, response) => response.end('fine'), null],
    [(_, response) => response.writeHead(503).end(), /^answered 503$/],
    [(_, response) => response.writeHead(302, { location: elsewhere.url }).end(), /^answered 302$/],
    [(_, response) => response.end(Buffer.alloc(2 * 1024 ** 2)), /too large/],
    [(request) => request.socket.destroy(), /^does not answer \(ECONNRESET\)$/],
    [() => {}, /^no answer in 200 ms$/],
    [(_, response) => void response.writeHead(200).write('slow'), /^no answer in 200 ms$/],
  ];
  for (const [listener, issue] of cases) {
    await using server = await serve(listener);
    const result = await checkService(server.url, options);
    assert.equal(result.isOnline, issue === null);
    if (issue) assert.match(result.issue!, issue);
    else assert.ok(result.latencyUs! > 0 && result.statusCode === 200);
  }
  const guarded = { ...options, mayReach: createReach(false) };
  for (const url of [elsewhere.url, 'http://localhost:1/', 'http://[::1]:1/', 'http://10.0.0.1/'])
    assert.match((await checkService(url, guarded)).issue!, /no address that may be asked/);
  assert.ok(!visited);
});

test('what a node announces is checked only where it is an address', () => {
  const nodeId = 'a'.repeat(64);
  assert.equal(computeTarget({ nodeId, url: 'http://node.test/' })?.url, 'http://node.test/status/config');
  for (const url of ['', 'ftp://x', 'http://u:p@x/', 'http://x/?a=b', 'http://x/#y', 'javascript:alert(1)'])
    assert.equal(computeTarget({ nodeId, url }), undefined, url);
});

test('the page shows what services are called and nothing of it is markup', () => {
  const evil = '<script>alert(1)</script>"\'&';
  const service = {
    id: 1,
    name: evil,
    group_id: 2,
    online: false,
    issue: evil,
    latency: 1_500,
  } as ServiceView;
  const view = {
    ...service,
    online_24_hours: 50,
    online_7_days: 99.5,
    stats: { hits: 2, failures: 1, first_hit: null },
  };
  const page = renderPage([view], 0);
  assert.ok(!page.includes('<script') && !page.includes(evil));
  assert.match(page, /1 of 1 services do not answer/);
  assert.match(page, /&#60;script&#62;/);
  assert.match(CONTENT_SECURITY_POLICY, /^default-src 'none'; style-src 'sha256-/);
  assert.match(renderPage([], 0), /Nothing was checked yet/);
});

const readJson = async (url: string) => (await fetch(url)).json() as Promise<unknown>;

async function untilServices(
  url: string,
  holds: (services: ServiceView[]) => boolean,
): Promise<ServiceView[]> {
  for (;;) {
    const services = (await readJson(`${url}/api/services`)) as ServiceView[];
    if (holds(services)) return services;
    await delay(20);
  }
}

test('checks what it is told to, shows it, and remembers it over a restart', {
  timeout: 30_000,
}, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-status-'));
  let isWell = true;
  await using core = await serve((_, response) =>
    response.writeHead(isWell ? 200 : 503).end('{"posts":[],"next_cursor":null}'),
  );
  await using web = await serve((_, response) => response.end());
  const start = () =>
    statusService.start(
      readConfig(statusService.config, {
        SKERRY_STATUS_PORT: '0',
        SKERRY_STATUS_HOST: '127.0.0.1',
        SKERRY_STATUS_CORE_URL: core.url,
        SKERRY_STATUS_DATA_DIR: dataDir,
        SKERRY_STATUS_SERVICES: `web=${web.url}/`,
        SKERRY_STATUS_PERIOD_SECONDS: '1',
      }),
      { log: createLogger('test', 'silent'), signal: never },
    );
  try {
    const first = await start();
    const [url] = first.urls as [string];
    await untilServices(url, (services) => services.length === 2 && services.every(({ online }) => online));
    isWell = false;
    const [coreView, webView] = await untilServices(url, (services) => services[0]!.stats.failures > 0);
    assert.deepEqual(
      [coreView!.name, coreView!.online, coreView!.status_code, coreView!.issue],
      ['core node', false, 503, 'answered 503'],
    );
    assert.ok(coreView!.online_24_hours > 0 && coreView!.online_24_hours < 100);
    assert.equal(webView!.online_7_days, 100);
    createParser(ServicesView, 'services')([coreView, webView]);
    createParser(Type.Array(FailureView), 'failures')(await readJson(`${url}/api/services/1/failures`));
    const uptime = createParser(
      Type.Array(UptimeView),
      'uptime',
    )(await readJson(`${url}/api/services/1/uptime_data`));
    assert.ok(uptime.length > 0);
    const page = await fetch(`${url}/`);
    assert.equal(page.headers.get('content-security-policy'), CONTENT_SECURITY_POLICY);
    assert.match(await page.text(), /1 of 2 services do not answer/);
    for (const [path, status] of [
      ['/api/services/9', 404],
      ['/api/services/x', 400],
      ['/api/nothing', 404],
    ] as const)
      assert.equal((await fetch(`${url}${path}`)).status, status, path);
    await first[Symbol.asyncDispose]();

    const second = await start();
    const after = await untilServices(second.urls[0]!, (services) => services.length === 2);
    for (const [index, before] of [coreView!, webView!].entries()) {
      assert.ok(after[index]!.stats.hits >= before.stats.hits, 'checks were forgotten');
      assert.deepEqual(
        [after[index]!.id, after[index]!.created_at, after[index]!.stats.first_hit],
        [before.id, before.created_at, before.stats.first_hit],
      );
    }
    await second[Symbol.asyncDispose]();
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});

test('settings are read strictly, and the document has every route', async () => {
  assert.throws(
    () =>
      readConfig(statusService.config, { SKERRY_STATUS_SERVICES: 'web', SKERRY_STATUS_PERIOD_SECONDS: '0' }),
    (error) => error instanceof AppError && error.message.split('\n').length === 2,
  );
  const { paths } = (await describeApi()) as { paths: object };
  assert.deepEqual(Object.keys(paths).sort(), [
    '/',
    '/api/services',
    '/api/services/{id}',
    '/api/services/{id}/failures',
    '/api/services/{id}/uptime_data',
    '/api/v0/openapi.json',
    '/status',
  ]);
});
