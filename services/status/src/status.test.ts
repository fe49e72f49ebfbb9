import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { call } from '@skerry/client';
import { createLogger, createReach, type HttpServer, rateLimitsOf, readConfig } from '@skerry/kit';
import { testContract, testRate } from '@skerry/kit/testing';
import { serving } from '@skerry/kit/testing/serving';
import { AppError } from '@skerry/protocol';
import { STATUS_EXAMPLES } from '@skerry/protocol/api/examples/status';
import { type ServiceView, STATUS_API } from '@skerry/protocol/api/status';
import { checkService } from './check.ts';
import { History } from './history/history.ts';
import { type Service, Store } from './history/store.ts';
import { createApi } from './http/api.ts';
import { CONTENT_SECURITY_POLICY, renderPage } from './http/page.ts';
import { serviceView } from './http/views.ts';
import { statusService } from './index.ts';
import { computeTarget } from './registry.ts';
import { silentMax, Turns } from './turns.ts';

const never = new AbortController().signal;
/** Only what hangs takes as long. */
const HANG_MS = 60_000;

const settingsOf = (coreUrl: string, dataDir: string) => ({
  SKERRY_STATUS_PORT: '0',
  SKERRY_STATUS_HOST: '127.0.0.1',
  SKERRY_STATUS_CORE_URL: coreUrl,
  SKERRY_STATUS_DATA_DIR: dataDir,
  SKERRY_STATUS_ALLOW_PRIVATE: 'yes',
});

test('a check ends in time, whatever it meets, and goes nowhere else', async () => {
  let visited = false;
  await using elsewhere = await serving((_, response) => {
    visited = true;
    response.end();
  });
  const options = { mayReach: createReach(true), timeoutMs: HANG_MS, signal: never };
  const cases: [RequestListener, RegExp | null][] = [
    [(_, response) => response.end('fine'), null],
    [(_, response) => response.writeHead(503).end(), /^answered 503$/],
    [(_, response) => response.writeHead(302, { location: elsewhere.url }).end(), /^answered 302$/],
    [(_, response) => response.end(Buffer.alloc(2 * 1024 ** 2)), /too large/],
    [(request) => request.socket.destroy(), /^does not answer \(ECONNRESET\)$/],
    [
      ({ socket }) => void socket.end('HTTP/1.1 101 Other\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
      /^does not answer \(answered 101, unasked\)$/,
    ],
    [() => {}, /^no answer within 200 ms$/],
    [(_, response) => void response.writeHead(200).write('slow'), /^no answer within 200 ms$/],
  ];
  for (const [listener, issue] of cases) {
    await using server = await serving(listener);
    const isEndless = issue?.test('no answer within 200 ms');
    const result = await checkService(server.url, isEndless ? { ...options, timeoutMs: 200 } : options);
    assert.equal(result.isOnline, issue === null);
    if (issue) assert.match(result.issue!, issue);
    else assert.ok(result.latencyUs! > 0 && result.statusCode === 200);
  }
  const guarded = { ...options, mayReach: createReach(false) };
  for (const url of [elsewhere.url, 'http://localhost:1/', 'http://[::1]:1/', 'http://10.0.0.1/'])
    assert.match((await checkService(url, guarded)).issue!, /no allowed address/);
  assert.ok(!visited);
});

test('what a node announces is checked only where it is an address', () => {
  const nodeId = 'a'.repeat(64);
  assert.equal(computeTarget({ nodeId, url: 'http://node.test/' })?.url, 'http://node.test/status/config');
  for (const url of ['', 'ftp://x', 'http://u:p@x/', 'http://x/?a=b', 'http://x/#y', 'javascript:alert(1)'])
    assert.equal(computeTarget({ nodeId, url }), undefined, url);
});

/** A compute node as it is listed, checked as often as there are answers. */
function nodeOf(id: number, name: string, ...answers: readonly boolean[]): Service {
  const target = { ...computeTarget({ nodeId: String(id), url: `http://n${id}.test` })!, name };
  const history = new History();
  for (const [index, isOnline] of answers.entries())
    history.add({ atMs: index, isOnline, latencyUs: 1_500, statusCode: null, issue: isOnline ? null : name });
  return { id, target, createdMs: 0, seenMs: 0, history };
}

const pageOf = (...services: readonly Service[]) =>
  renderPage(services, (some) => some.map((one) => serviceView(one, 0, 60)), 0);

test('the page shows what services are called and nothing of it is markup', () => {
  const evil = '<script>alert(1)</script>"\'&';
  const page = pageOf(nodeOf(1, evil, true, false));
  assert.ok(!page.includes('<script') && !page.includes(evil));
  assert.match(page, /1 of 1 services do not answer/);
  assert.match(page, /&#60;script&#62;/);
  assert.match(CONTENT_SECURITY_POLICY, /^default-src 'none'; style-src 'sha256-/);
  assert.match(pageOf(), /Nothing was checked yet/);
  assert.match(pageOf(nodeOf(1, evil, true)), /<td class="number">\d+\.\d ms<\/td>/);
  assert.doesNotMatch(page, / ms</);
});

test('announced nodes that never answered are not what the page says of the network', () => {
  const silent = Array.from({ length: 600 }, (_, index) => nodeOf(index + 10, `node ${index + 10}`, false));
  const [up, fell] = [nodeOf(1, 'node 1', true), nodeOf(2, 'node 2', true, false)];
  assert.match(pageOf(up, ...silent), /All 1 services answer.*never answered: 600/s);
  const page = pageOf(...silent, up, fell);
  assert.match(page, /1 of 2 services do not answer/);
  assert.match(page, /node 2<.*node 1<.*node 10</s);
});

test("thousands of one stranger's nodes that answered once drive nothing off the page", () => {
  const flood = Array.from({ length: 2_000 }, (_, index) => {
    const service = nodeOf(index + 10, `node ${index + 10}`, true, false);
    return { ...service, target: { ...service.target, url: `http://n${index}.flood.test/status/config` } };
  });
  const page = pageOf(...flood, nodeOf(5_000, 'node 5000', true), nodeOf(5_001, 'node 5001', true, false));
  assert.match(page, /node 5001<.*node 5000</s);
  assert.match(page, /and 1502 more/);
});

async function untilServices(
  url: string,
  holds: (services: ServiceView[]) => boolean,
): Promise<ServiceView[]> {
  for (;;) {
    const services = await call(url, STATUS_API.listServices, {});
    if (holds(services)) return services;
    await delay(20);
  }
}

test('compute nodes of an earlier process are checked while the core node is away', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-status-'));
  await using core = await serving((_, response) => response.writeHead(503).end());
  await using node = await serving((_, response) => response.end());
  const log = createLogger('test', 'silent');
  const target = computeTarget({ nodeId: 'a'.repeat(64), url: node.url })!;
  await (await Store.open(dataDir, log)).sync([target], Date.now() - 30 * 86_400_000);
  const settings = {
    ...settingsOf(core.url, dataDir),
  };
  const running = await statusService.start(readConfig(statusService.config, settings), {
    log,
    signal: never,
  });
  try {
    const services = await untilServices(running.urls[0]!, (all) => all.every(({ stats }) => stats.hits > 0));
    assert.deepEqual(
      services.map(({ id, name, online }) => [id, name, online]),
      [
        [1, target.name, true],
        [2, 'core node', false],
      ],
    );
  } finally {
    await running[Symbol.asyncDispose]();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test('who announces without end has no node count as gone that is known', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-status-'));
  await using core = await serving(({ url }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const flood = { posts: [], pagination_per_page: 500, next_cursor: 'on' };
    response.end(JSON.stringify(url!.startsWith('/api/v0/posts.json') ? flood : {}));
  });
  await using node = await serving((_, response) => response.end());
  const log = createLogger('test', 'silent');
  const target = computeTarget({ nodeId: 'a'.repeat(64), url: node.url })!;
  const gone = computeTarget({ nodeId: 'b'.repeat(64), url: 'http://127.0.0.1:9' })!;
  const store = await Store.open(dataDir, log);
  const services = await store.sync([target, gone], Date.now());
  const said = { atMs: Date.now(), latencyUs: null, statusCode: null, issue: null };
  await store.add(
    services.map((service, index) => ({ service, result: { ...said, isOnline: index === 0 } })),
  );
  const settings = {
    ...settingsOf(core.url, dataDir),
    SKERRY_STATUS_CHECK_INTERVAL_SECONDS: '1',
  };
  const config = readConfig(statusService.config, settings);
  const running = await statusService.start(config, { log, signal: never });
  try {
    const hitsOf = (all: ServiceView[], service: number) =>
      all.find(({ id }) => id === service)?.stats.hits ?? 0;
    // A second round begins once the first one is over.
    const isChecked = (all: ServiceView[]) => hitsOf(all, 1) > 2;
    const isCoreChecked = (all: ServiceView[]) => hitsOf(all, 3) > 9;
    const now = await untilServices(running.urls[0]!, (all) => isChecked(all) || isCoreChecked(all));
    assert.ok(isChecked(now));
    // What never answered is not known, or nodes that left would be down for ever.
    assert.equal(hitsOf(now, 2), 1);
  } finally {
    await running[Symbol.asyncDispose]();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test('announced nodes that do not answer take turns, and do not delay what the operator named', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-status-'));
  await using core = await serving((_, response) => response.writeHead(503).end());
  let asked = 0;
  await using silent = await serving(() => asked++);
  const log = createLogger('test', 'silent');
  const targets = ['a', 'b'].map((digit) => computeTarget({ nodeId: digit.repeat(64), url: silent.url })!);
  await (await Store.open(dataDir, log)).sync(targets, Date.now());
  const settings = {
    ...settingsOf(core.url, dataDir),
    SKERRY_STATUS_CHECK_INTERVAL_SECONDS: '1',
    SKERRY_STATUS_CONCURRENCY: '1',
    SKERRY_STATUS_TIMEOUT_MS: String(HANG_MS),
  };
  const config = readConfig(statusService.config, settings);
  const running = await statusService.start(config, { log, signal: never });
  try {
    const hitsOf = (services: ServiceView[]) => services.map(({ stats }) => stats.hits);
    const services = await untilServices(running.urls[0]!, (all) => asked > 0 && hitsOf(all)[2]! >= 2);
    assert.deepEqual(hitsOf(services).slice(0, 2), [0, 0]);
  } finally {
    await running[Symbol.asyncDispose]();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test('each silent node has a turn before any has a second, and who answers needs none', () => {
  const max = silentMax({ concurrency: 64, checkIntervalSeconds: 60, timeoutMs: 5_000 });
  assert.equal(max, 384);
  assert.equal(silentMax({ concurrency: 64, checkIntervalSeconds: 1, timeoutMs: 60_000 }), 64);
  const NOW = 10 * 86_400_000;
  const serviceOf = (id: number, lastSuccessMs?: number): Service => {
    const target = computeTarget({ nodeId: `${id}`.padStart(64, '0'), url: 'http://node.test' })!;
    const history = new History();
    if (lastSuccessMs !== undefined)
      history.add({ atMs: lastSuccessMs, isOnline: true, latencyUs: 1, statusCode: 200, issue: null });
    return { id, target, createdMs: 0, seenMs: 0, history };
  };
  const strangers = Array.from({ length: 1_000 }, (_, index) => serviceOf(index + 10));
  const [honest, ...others] = [NOW - 1_000, NOW - 86_400_000, NOW + 1_000].map((atMs, index) =>
    serviceOf(index + 1, atMs),
  );
  const turns = new Turns(max);
  const seen = new Map<number, number>();
  for (let round = 0; round < 3; round++) {
    const chosen = turns.choose([...strangers, ...others, honest!], NOW);
    assert.equal(chosen[0], honest);
    for (const { id } of chosen) seen.set(id, (seen.get(id) ?? 0) + 1);
  }
  const silent = [...strangers, ...others].map(({ id }) => seen.get(id));
  assert.deepEqual([Math.min(...silent.map(Number)), Math.max(...silent.map(Number))], [1, 2]);
  // One that is gone and one that answers again leave the line.
  const left = turns.choose([honest!, others[0]!], NOW);
  assert.deepEqual(left, [honest, others[0]]);
});

test('checks what it is told to, shows it, and remembers it over a restart', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-status-'));
  let isWell = true;
  await using core = await serving((_, response) =>
    response.writeHead(isWell ? 200 : 503).end('{"posts":[],"next_cursor":null}'),
  );
  await using web = await serving((_, response) => response.end());
  const start = () =>
    statusService.start(
      readConfig(statusService.config, {
        SKERRY_STATUS_PORT: '0',
        SKERRY_STATUS_HOST: '127.0.0.1',
        SKERRY_STATUS_CORE_URL: core.url,
        SKERRY_STATUS_DATA_DIR: dataDir,
        SKERRY_STATUS_SERVICES: `web=${web.url}/`,
        SKERRY_STATUS_CHECK_INTERVAL_SECONDS: '1',
        SKERRY_STATUS_TIMEOUT_MS: String(HANG_MS),
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
    const one = { params: { id: 1 } };
    assert.equal((await call(url, STATUS_API.getService, one)).name, 'core node');
    assert.ok((await call(url, STATUS_API.listFailures, one)).length > 0);
    const uptime = await call(url, STATUS_API.listUptime, one);
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
      readConfig(statusService.config, {
        SKERRY_STATUS_SERVICES: 'web',
        SKERRY_STATUS_CHECK_INTERVAL_SECONDS: '0',
      }),
    (error) => error instanceof AppError && error.message.split('\n').length === 2,
  );
});

describe('the contract', () => {
  let app: HttpServer;
  before(async () => {
    const target = computeTarget({ nodeId: '1'.repeat(64), url: 'http://node.test' })!;
    const service = { id: 1, target, createdMs: 0, seenMs: 0, history: new History() };
    service.history.add({
      atMs: 1_000,
      isOnline: false,
      latencyUs: 5,
      statusCode: 503,
      issue: 'answered 503',
    });
    app = await createApi(
      {
        services: () => [service],
        find: (id) => (id === 1 ? service : undefined),
        reasons: () => ['no service is known'],
        periodSeconds: 60,
        now: () => 2_000,
      },
      rateLimitsOf(readConfig(statusService.config, {})),
      createLogger('test', 'silent'),
    );
  });
  after(() => app.close());
  const one = { params: { id: 1 } };
  testRate(() => app, '/api/services', 100);
  const requests = {
    listServices: [
      {},
      { query: { limit: 1, after: 0, online: false, heard: false, permalink: 'compute-1' } },
    ],
    getService: [one],
    listFailures: [one],
    listUptime: [one],
    listDays: [one],
    getStatus: [{}],
    getPage: [{}],
    getDocument: [{}],
    getReference: [{}],
  };
  testContract(() => app, STATUS_API, requests, STATUS_EXAMPLES);
});
