import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import fc from 'fast-check';
import { daysView } from '../http/views.ts';
import { namedTarget, type Target } from '../registry.ts';
import { BUCKET_MS, History, KEPT_MS, meanLatency, percentOnline, type Result } from './history.ts';
import { type Service, Store } from './store.ts';

const log = createLogger('test', 'silent');
const NOW = Date.UTC(2026, 0, 9, 12, 7);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ok = (atMs: number, latencyUs = 1_000): Result => ({
  atMs,
  isOnline: true,
  latencyUs,
  statusCode: 200,
  issue: null,
});
const bad = (atMs: number): Result => ({
  atMs,
  isOnline: false,
  latencyUs: null,
  statusCode: 503,
  issue: 'answered 503',
});

test('what nothing was added to is summed up once in a quarter of an hour, and is never out of date', () => {
  const spans = [DAY_MS, KEPT_MS];
  const step = fc.record({ minutes: fc.integer({ min: -60, max: 24 * 60 }), isOnline: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const history = new History();
      let nowMs = NOW;
      for (const { minutes, isOnline } of steps) {
        nowMs += minutes * 60_000;
        history.add(isOnline ? ok(nowMs) : bad(nowMs));
        for (const askedMs of [nowMs, nowMs + BUCKET_MS, nowMs]) {
          const anew = History.fromRecord(history.toRecord());
          for (const spanMs of spans)
            assert.deepEqual(history.sum(askedMs, spanMs), anew.sum(askedMs, spanMs));
        }
        for (const spanMs of spans) assert.equal(history.sum(nowMs, spanMs), history.sum(nowMs, spanMs));
      }
    }),
    { numRuns: 30 },
  );
});

test('uptime is the part of the checks in the window that did not fail', () => {
  const history = new History();
  for (let hour = 10 * 24; hour >= 0; hour--)
    history.add(hour >= 12 && hour < 24 ? bad(NOW - hour * 3_600_000) : ok(NOW - hour * 3_600_000, 2_000));
  const day = history.sum(NOW, DAY_MS);
  assert.deepEqual([day.hits, day.failures, percentOnline(day), meanLatency(day)], [25, 12, 52, 2_000]);
  const week = history.sum(NOW, KEPT_MS);
  assert.deepEqual([week.hits, week.failures, percentOnline(week)], [169, 12, 92.9]);
  assert.deepEqual([history.totals.hits, history.totals.failures], [241, 12]);
  assert.ok(history.list().length <= KEPT_MS / BUCKET_MS + 1);
  assert.equal(percentOnline({ hits: 0, failures: 0, latencyUs: 0 }), 0);
});

test('a history is the same after it was written and read, and every window sums what a count of the checks sums', () => {
  const result = fc.record({ minutes: fc.integer({ min: 0, max: 12 * 1_440 }), isOnline: fc.boolean() });
  fc.assert(
    fc.property(fc.array(result, { maxLength: 60 }), (list) => {
      const results = list
        .sort((a, b) => b.minutes - a.minutes)
        .map(({ minutes, isOnline }) => (isOnline ? ok : bad)(NOW - minutes * 60_000));
      const history = new History();
      for (const one of results) history.add(one);
      const again = History.fromRecord(JSON.parse(JSON.stringify(history.toRecord())));
      assert.deepEqual(again.toRecord(), history.toRecord());
      for (const spanMs of [DAY_MS, KEPT_MS]) {
        const since = Math.floor((NOW - spanMs) / BUCKET_MS) * BUCKET_MS;
        const expected = results.filter(({ atMs }) => atMs >= since);
        const { hits, failures } = history.sum(NOW, spanMs);
        assert.deepEqual(
          [hits, failures],
          [expected.length, expected.filter(({ isOnline }) => !isOnline).length],
        );
      }
    }),
  );
});

test('one check under a wrong clock costs no more than one part, and counts where it is dated', () => {
  const QUARTERS = KEPT_MS / BUCKET_MS + 1;
  for (const offsetMs of [30 * DAY_MS, -20_000 * DAY_MS]) {
    const history = new History();
    for (let quarter = QUARTERS - 1; quarter >= 0; quarter--) history.add(ok(NOW - quarter * BUCKET_MS));
    history.add(bad(NOW + offsetMs));
    history.add(ok(NOW));
    assert.ok(history.list().length >= QUARTERS - 1, `${history.list().length}`);
    assert.deepEqual(
      [DAY_MS, KEPT_MS].map((spanMs) => history.sum(NOW, spanMs).failures),
      [0, 0],
    );
    history.add(ok(NOW + BUCKET_MS));
    assert.deepEqual(
      history.list().filter(({ bucket }) => bucket.failures > 0),
      [],
      'it goes first',
    );
  }
});

test('days are kept for a year, and those of the last week come from what an older version wrote', () => {
  const history = new History();
  for (let day = 400; day >= 0; day--) history.add((day === 3 ? bad : ok)(NOW - day * DAY_MS));
  const days = history.listDays();
  assert.deepEqual([days.length, days.at(-1)!.startMs], [366, Math.floor(NOW / DAY_MS) * DAY_MS]);
  assert.deepEqual(days.at(-4)!.bucket, { hits: 1, failures: 1, latencyUs: 0 });
  assert.deepEqual(History.fromRecord(history.toRecord()).listDays(), days);
  const { days: _, ...older } = history.toRecord();
  assert.deepEqual(History.fromRecord(older).listDays().slice(-8), days.slice(-8));
});

async function createDir() {
  const path = await mkdtemp(join(tmpdir(), 'skerry-status-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Looks every hour, after one moment and up to another. */
async function look(store: Store, present: Parameters<Store['sync']>[0], fromMs: number, toMs: number) {
  let services: Service[] = [];
  for (let atMs = fromMs + HOUR_MS; atMs <= toMs; atMs += HOUR_MS) services = await store.sync(present, atMs);
  return services;
}

const targets = ['web', 'api'].map((name) => namedTarget({ name, url: `http://${name}.test/` }));
const countsOf = (services: readonly Service[]) =>
  services.map(({ id, target, history }) => [id, target.name, history.totals.hits, history.totals.failures]);

test('results survive any end of the process, once each', async () => {
  await using dir = await createDir();
  const first = await Store.open(dir.path, log);
  const [web, api] = await first.sync(targets, NOW);
  await first.add([
    { service: web!, result: ok(NOW) },
    { service: api!, result: bad(NOW) },
  ]);
  await first.add([{ service: web!, result: ok(NOW + 1) }]);
  // Nothing is closed: that is what a kill leaves. The last line was cut off.
  const journal = await readFile(join(dir.path, 'journal.jsonl'), 'utf8');
  await appendFile(join(dir.path, 'journal.jsonl'), '{"n":4,"id":1,"atM');
  const second = await Store.open(dir.path, log);
  assert.deepEqual(countsOf(second.services), [
    [1, 'web', 2, 0],
    [2, 'api', 1, 1],
  ]);
  // Killed between the snapshot and the emptying of the journal.
  await writeFile(join(dir.path, 'journal.jsonl'), journal);
  const third = await Store.open(dir.path, log);
  assert.deepEqual(countsOf(third.services), countsOf(second.services));
  assert.deepEqual(third.services[1]!.history.last, bad(NOW));
});

test('a history that cannot be read is set aside, and a new one begins', async () => {
  for (const text of [
    '',
    '{"sequence":3,"nextId":2,"serv',
    '{"sequence":3,"nextId":2,"services":[{}]}',
    '[]',
  ]) {
    await using dir = await createDir();
    const first = await Store.open(dir.path, log);
    const [web] = await first.sync(targets, NOW);
    await first.add([{ service: web!, result: ok(NOW) }]);
    await writeFile(join(dir.path, 'snapshot.json'), text);
    const second = await Store.open(dir.path, log);
    assert.equal(await readFile(join(dir.path, 'snapshot.json.unreadable'), 'utf8'), text);
    const [again] = await second.sync(targets, NOW);
    await second.add([{ service: again!, result: bad(NOW) }]);
    const third = await Store.open(dir.path, log);
    assert.deepEqual(countsOf(third.services), [
      // As far as is known which ids were given.
      [2, 'web', 1, 1],
      [3, 'api', 0, 0],
    ]);
  }
});

test('a service keeps its id, and one that is gone is forgotten after a week', async () => {
  await using dir = await createDir();
  const store = await Store.open(dir.path, log);
  await store.sync(targets, NOW);
  const other = namedTarget({ name: 'other', url: 'http://other.test/' });
  assert.deepEqual(
    (await look(store, [targets[1]!, other], NOW, NOW + KEPT_MS)).map(({ id }) => id),
    [2, 3],
  );
  assert.equal(store.services.length, 3);
  await store.sync([targets[1]!, other], NOW + KEPT_MS + 1);
  assert.deepEqual(
    store.services.map(({ id }) => id),
    [2, 3],
  );
  const again = await Store.open(dir.path, log);
  assert.deepEqual(
    (await again.sync(targets, NOW + KEPT_MS + 2)).map(({ id }) => id),
    [4, 2],
  );
});

test('a service is not forgotten over a time in which nobody looked, or for a snapshot that is old', async () => {
  await using dir = await createDir();
  const first = await Store.open(dir.path, log);
  await first.sync(targets, NOW);
  await first.sync(targets, NOW + KEPT_MS + 1);
  const second = await Store.open(dir.path, log);
  await second.sync([targets[1]!], NOW + KEPT_MS + 2);
  const idsOf = ({ services }: Store) => services.map(({ id }) => id);
  assert.deepEqual(idsOf(second), [1, 2]);
  const third = await Store.open(dir.path, log);
  await third.sync([targets[1]!], NOW + 9 * KEPT_MS);
  assert.deepEqual(idsOf(third), [1, 2]);
  await look(third, [targets[1]!], NOW + 9 * KEPT_MS, NOW + 10 * KEPT_MS);
  await third.sync([targets[1]!], NOW + 10 * KEPT_MS + 1);
  assert.deepEqual(idsOf(third), [2]);
});

test('a clock that was ahead when the process ended makes no other service old', async () => {
  await using dir = await createDir();
  const first = await Store.open(dir.path, log);
  const [web] = await first.sync(targets, NOW);
  await first.add([{ service: web!, result: ok(NOW + 30 * DAY_MS) }]);
  const second = await Store.open(dir.path, log);
  await second.sync([], NOW + 1);
  assert.equal(second.services.length, 2);
  await look(second, [], NOW + 1, NOW + KEPT_MS + 1);
  await second.sync([], NOW + KEPT_MS + 2);
  assert.equal(second.services.length, 0);
});

test('a clock that is ahead for a while makes nothing old, and shows no days to come', async () => {
  await using dir = await createDir();
  const store = await Store.open(dir.path, log);
  const [web, api] = await store.sync(targets, NOW);
  await store.add([{ service: web!, result: ok(NOW) }]);
  for (const atMs of [NOW + 60_000, NOW + 400 * DAY_MS]) {
    await store.sync([targets[0]!], atMs);
    await store.add([{ service: web!, result: ok(atMs) }]);
  }
  await look(store, [targets[0]!], NOW + 60_000, NOW + KEPT_MS - DAY_MS);
  assert.equal(store.services.length, 2);
  assert.deepEqual(
    daysView(web!, NOW + DAY_MS).map(({ date, hits }) => [date, hits]),
    [['2026-01-09', 2]],
  );
  await look(store, [targets[0]!], NOW + KEPT_MS - DAY_MS, NOW + KEPT_MS + DAY_MS);
  assert.deepEqual([store.services, api!.target.name], [[web], 'api']);
});

test('however many nodes strangers announce, what the operator names is taken in', async () => {
  await using dir = await createDir();
  const store = await Store.open(dir.path, log);
  const strangers = Array.from({ length: 10_001 }, (_, index) => ({
    ...targets[0]!,
    key: `compute:${index}`,
    isForeign: true,
  }));
  assert.equal((await store.sync(strangers, NOW)).length, 10_000);
  assert.equal((await store.sync(targets, NOW)).length, 2);
});

/** The store is full of one stranger's nodes, all of which answered once. */
async function fill(dir: string, lastAtMs: number, isOnline: boolean) {
  const store = await Store.open(dir, log);
  const at = (url: string): Target => ({
    ...targets[0]!,
    key: url,
    url: `${url}/status/config`,
    isForeign: true,
  });
  const flood = Array.from({ length: 10_000 }, (_, index) => at(`http://n${index}.flood.test`));
  const [honest, other] = [at('http://honest.test'), at('http://192.0.2.1:4020')];
  const services = await store.sync([honest, ...flood.slice(0, 9_999)], NOW);
  await store.add(services.map((service) => ({ service, result: ok(NOW) })));
  const floodAgain = services.slice(1).map((service) => ({
    service,
    result: isOnline ? ok(lastAtMs) : bad(lastAtMs),
  }));
  await store.add([{ service: services[0]!, result: ok(lastAtMs) }, ...floodAgain]);
  const look = async (targets: readonly Target[]) =>
    new Set((await store.sync(targets, lastAtMs)).map(({ target }) => target.key));
  return { flood, honest, other, look };
}

test('strangers that answered once and do so no more give way to newcomers from elsewhere', async () => {
  await using dir = await createDir();
  const { flood, honest, other, look: lookAgain } = await fill(dir.path, NOW + DAY_MS, false);
  const kept = await lookAgain([honest, ...flood, other]);
  assert.equal(kept.size, 10_000);
  assert.ok(kept.has(other.key) && kept.has(honest.key));
  // The oldest of them went, and comes back for nobody.
  assert.ok(!kept.has(flood[0]!.key));
  assert.deepEqual(await lookAgain([...flood, honest, other]), kept);
});

test('strangers that answer share what there is: the newest of whoever has most gives way', async () => {
  await using dir = await createDir();
  const { flood, honest, other, look: lookAgain } = await fill(dir.path, NOW + DAY_MS, true);
  const kept = await lookAgain([honest, ...flood, other]);
  assert.equal(kept.size, 10_000);
  assert.ok(kept.has(other.key) && kept.has(honest.key) && kept.has(flood[0]!.key));
  assert.ok(!kept.has(flood[9_998]!.key));
  assert.deepEqual(await lookAgain([...flood, honest, other]), kept);
});

test('where strangers have all places, one who never answered gives way to a newcomer from elsewhere, and nobody does without end', async () => {
  await using dir = await createDir();
  const store = await Store.open(dir.path, log);
  const at = (url: string): Target => ({
    ...targets[0]!,
    key: `compute:${url}`,
    url: `${url}/status/config`,
    isForeign: true,
  });
  const flood = Array.from({ length: 10_000 }, (_, index) => at(`http://n${index}.flood.test`));
  const keysOf = (services: readonly Service[]) => services.map(({ target }) => target.key);
  const taken = await store.sync(flood, NOW);
  // The first of them answers: it is nobody's place any more.
  await store.add([{ service: taken[0]!, result: ok(NOW) }]);
  const honest = [
    'http://honest.test',
    'http://192.0.2.1:4020',
    'http://[2a00:1::1]',
    'http://n.a.co.uk',
  ].map(at);
  for (const [round, all] of [
    [...flood, ...honest],
    [...honest, ...flood],
  ].entries()) {
    const keys = keysOf(await store.sync(all, NOW + round));
    assert.equal(keys.length, 10_000);
    for (const { key } of [flood[0]!, ...honest, flood.at(-1)!]) assert.ok(keys.includes(key), key);
    for (const { key } of flood.slice(1, 5)) assert.ok(!keys.includes(key), key);
  }
  const ids = store.services.map(({ id }) => id);
  const others = Array.from({ length: 10_000 }, (_, index) => at(`http://n${index}.flood2.test`));
  await store.sync([...flood, ...honest, ...others], NOW + 3);
  const count = (name: string) => keysOf(store.services).filter((key) => key.includes(name)).length;
  assert.ok(Math.abs(count('flood.') - count('flood2.')) <= 2);
  assert.deepEqual(
    store.services.slice(0, 1).map(({ id }) => id),
    ids.slice(0, 1),
  );
  // What has a fair share stays: nothing is written again and again.
  const settled = store.services.map(({ id }) => id);
  await store.sync([...others, ...honest, ...flood], NOW + 4);
  assert.deepEqual(
    store.services.map(({ id }) => id),
    settled,
  );
  const again = await Store.open(dir.path, log);
  assert.deepEqual(
    again.services.map(({ id }) => id),
    settled,
  );
});
