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
  // Whoever knows nothing of pages has all, as ever.
  assert.equal((await served.list({})).length, all.length);
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
  assert.equal((await idsOf({ heard: false })).length, 2_000);
  assert.deepEqual(await idsOf({ permalink: `compute-${(5_001).toString(16).padStart(64, '0')}` }), [5_000]);
  for (const query of ['limit=0', 'limit=1001', 'after=-1', 'after=x', 'online=perhaps', 'page=2'])
    assert.equal((await fetch(`${served.url}/api/services?${query}`)).status, 400, query);
});
