import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call } from '@skerry/client';
import { createLogger, listen, rateLimitsOf, readConfig } from '@skerry/kit';
import { STATUS_API } from '@skerry/protocol/api/status';
import { statusConfig } from '../config.ts';
import { History } from '../history/history.ts';
import type { Service } from '../history/store.ts';
import { computeTarget, coreTarget, namedTarget, type Target } from '../registry.ts';
import { createApi } from './api.ts';

const nodeAt = (index: number) =>
  computeTarget({ nodeId: index.toString(16).padStart(64, '0'), url: `http://n${index}.test` })!;

function serviceOf(id: number, target: Target, ...answers: readonly boolean[]): Service {
  const history = new History();
  for (const [index, isOnline] of answers.entries())
    history.add({ atMs: 1_000 + index, isOnline, latencyUs: null, statusCode: null, issue: null });
  return { id, target, createdMs: 0, seenMs: 0, history };
}

async function serveList(services: Service[]) {
  const app = await createApi(
    {
      services: () => services,
      find: () => undefined,
      reasons: () => [],
      periodSeconds: 60,
      now: () => 2_000,
    },
    rateLimitsOf(readConfig(statusConfig, { SKERRY_STATUS_RATE_LIMITS: 'no' })),
    createLogger('test', 'silent'),
  );
  const url = await listen(app, '127.0.0.1', 0);
  const list = (query: object) => call(url, STATUS_API.listServices, { query });
  return { url, list, [Symbol.asyncDispose]: () => app.close() };
}

test('ten thousand services are read page by page, each once, also while some leave and others come', async () => {
  const all = Array.from({ length: 10_000 }, (_, index) => serviceOf(index + 1, nodeAt(index), true));
  await using served = await serveList(all);
  const seen: number[] = [];
  let after = 0;
  for (let pages = 0; ; pages++) {
    assert.ok(pages < 20);
    const page = await served.list({ limit: 1_000, after });
    seen.push(...page.map(({ id }) => id));
    if (page.length < 1_000) break;
    after = page.at(-1)!.id;
    // What was read is gone, and so is what the next page would begin with; what comes has a greater id.
    all.splice(0, 1);
    all.splice(
      all.findIndex(({ id }) => id > after),
      1,
    );
    all.push(serviceOf(20_000 + pages, nodeAt(20_000 + pages), true));
  }
  assert.deepEqual(
    [...new Set(seen)],
    seen.toSorted((a, b) => a - b),
  );
  assert.deepEqual(all.filter(({ id }) => !seen.includes(id)).length, 0);
  // Without a limit, what follows an id is a page, too.
  assert.deepEqual(
    (await served.list({ after })).map(({ id }) => id),
    seen.filter((id) => id > after).slice(0, 1_000),
  );
});

test('whoever knows nothing of pages has a thousand services: no stranger has all of them', async () => {
  const at = (id: number, url: string, ...answers: readonly boolean[]) =>
    serviceOf(id, computeTarget({ nodeId: id.toString(16).padStart(64, '0'), url })!, ...answers);
  const flood = Array.from({ length: 6_000 }, (_, index) =>
    at(index + 10, `http://n${index}.flood.test`, true, index % 2 === 0),
  );
  const silent = Array.from({ length: 4_000 }, (_, index) =>
    at(index + 10_000, `http://n${index}.test`, false),
  );
  const named = [
    serviceOf(20_000, coreTarget('http://core.test'), false),
    serviceOf(20_001, namedTarget({ name: 'web', url: 'http://web.test' }), false),
  ];
  const honest = [at(20_002, 'http://192.0.2.1', true), at(20_003, 'http://[2a00:1::1]', true)];
  await using served = await serveList([...flood, ...silent, ...named, ...honest]);
  const ids = (await served.list({})).map(({ id }) => id);
  assert.equal(ids.length, 1_000);
  assert.deepEqual(ids.slice(-4), [20_000, 20_001, 20_002, 20_003]);
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => a - b),
  );
  // What answers comes before what does not.
  assert.ok(ids.every((id) => id >= 20_000 || (id < 10_000 && id % 2 === 0)));
});

test('what is down is found among thousands of nodes that strangers announced, and one by its name', async () => {
  const strangers = Array.from({ length: 2_000 }, (_, index) => serviceOf(index + 10, nodeAt(index), false));
  const [core, web, up, fell] = [
    serviceOf(1, coreTarget('http://core.test'), false),
    serviceOf(2, namedTarget({ name: 'web', url: 'http://web.test' }), true),
    serviceOf(3, nodeAt(5_000), false, true),
    serviceOf(5_000, nodeAt(5_001), true, false),
  ];
  await using served = await serveList([core, web, up, ...strangers, fell]);
  const idsOf = async (query: object) => (await served.list(query)).map(({ id }) => id);
  assert.deepEqual(await idsOf({ online: false, heard: true, limit: 100 }), [1, 5_000]);
  assert.deepEqual(await idsOf({ online: true }), [2, 3]);
  assert.equal((await idsOf({ heard: false })).length, 1_000);
  assert.equal((await idsOf({ heard: false, after: 1_009 })).length, 1_000);
  assert.deepEqual(await idsOf({ permalink: `compute-${(5_001).toString(16).padStart(64, '0')}` }), [5_000]);
  for (const query of ['limit=0', 'limit=1001', 'after=-1', 'after=x', 'online=perhaps', 'page=2'])
    assert.equal((await fetch(`${served.url}/api/services?${query}`)).status, 400, query);
});
