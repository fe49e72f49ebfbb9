import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import type { AppError, InstanceView } from '@skerry/protocol';
import { RUNNING } from '../testing/run.ts';
import type { Goal } from './goal.ts';
import { type WaitLimits, waitForInstance, waitLimits } from './wait.ts';

/** The event stream of a core node, as far as it is needed here: says these views and keeps the connection. */
async function serveEvents(begun: readonly Partial<InstanceView>[], options: { breakAfter?: number } = {}) {
  const views = [...begun];
  const kept: ServerResponse[] = [];
  let connections = 0;
  const send = (response: ServerResponse, index: number) => {
    const data = { ...RUNNING, ...views[index] };
    const event = { cursor: String(index + 1), kind: 'instance', time_ms: 0, data };
    response.write(`id: ${index + 1}\nevent: instance\ndata: ${JSON.stringify(event)}\n\n`);
  };
  const server = createServer((request, response) => {
    connections++;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const from = Number(new URL(request.url!, 'http://x').searchParams.get('cursor'));
    const until = connections === 1 ? (options.breakAfter ?? views.length) : views.length;
    for (let index = from; index < until; index++) send(response, index);
    if (until < views.length) response.end();
    else {
      response.flushHeaders();
      kept.push(response);
    }
  }).listen(0, 'localhost');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    core: new CoreClient({ url: `http://localhost:${port}` }),
    connections: () => connections,
    say(view: Partial<InstanceView>) {
      views.push(view);
      for (const response of kept) send(response, views.length - 1);
    },
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const NO_NODE = { node_id: null, ipv6: '', phase: 'scheduled' } as const;
const building = (percent: number) => ({
  phase: 'preparing' as const,
  reason: { code: 'BUILDING_IMAGE', message: `building debian:12, ${percent}%` },
});

function waitOn(
  core: CoreClient,
  goal: Goal,
  limits: Partial<WaitLimits> & { graceMs?: number; isPlaced?: boolean } = {},
) {
  const shown: string[] = [];
  const progress = { show: (text: string) => void shown.push(text), [Symbol.dispose]: () => {} };
  const { wholeMs = 30_000, stillMs = 30_000, graceMs = 30_000, isPlaced = false } = limits;
  const { instance_id: instanceId } = RUNNING;
  const phaseBefore = goal.kind === 'created' ? undefined : ('running' as const);
  const done = waitForInstance({
    core,
    instanceId,
    goal,
    cursor: '0',
    phaseBefore,
    limits: { wholeMs, stillMs },
    graceMs,
    isPlaced,
    progress,
  });
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  done.then(end, end);
  const hasShown = async (many: number) => {
    while (shown.length < many && !isOver) await new Promise(setImmediate);
  };
  return { done, shown, hasShown };
}

test('follows each phase with its reason until it runs; other instances do not count', async () => {
  const views = [
    { ...NO_NODE, reason: { code: 'AWAITING_NODE', message: 'waiting for a node' } },
    { instance_id: 'f'.repeat(64), phase: 'failed' as const },
    building(10),
    building(90),
    { phase: 'starting' as const },
    { phase: 'running' as const },
  ];
  using events = await serveEvents(views);
  const { done, shown } = waitOn(events.core, { kind: 'created' });
  assert.equal((await done).phase, 'running');
  assert.deepEqual(shown, [
    'scheduled: waiting for a node',
    'preparing: building debian:12, 10%',
    'preparing: building debian:12, 90%',
    'starting',
    'running',
  ]);
  // Where the answer said the node already, that it is waited for would be old.
  const placed = waitOn(events.core, { kind: 'created' }, { isPlaced: true });
  await placed.done;
  assert.deepEqual(placed.shown, shown.slice(1));
});

test('goes on where it was when the connection is lost', async () => {
  using events = await serveEvents([building(1), { phase: 'starting' }, { phase: 'running' }], {
    breakAfter: 1,
  });
  const { done, shown } = waitOn(events.core, { kind: 'created' });
  await done;
  assert.equal(events.connections(), 2);
  assert.deepEqual(shown, [
    'preparing: building debian:12, 1%',
    'the core node does not answer; retrying',
    'starting',
    'running',
  ]);
});

test('a failure ends it with the reason', async () => {
  const reason = { code: 'VM_START_FAILED', message: 'QEMU ended at once' };
  using events = await serveEvents([{ phase: 'failed', reason }]);
  const { done } = waitOn(events.core, { kind: 'created' });
  await assert.rejects(done, { code: 'VM_START_FAILED', message: 'QEMU ended at once' });
});

test('without a node for longer than the grace it says why', async () => {
  const reason = { code: 'NO_CAPACITY', message: 'no node has 64 GiB of memory' };
  using events = await serveEvents([{ ...NO_NODE, reason }]);
  const { done } = waitOn(events.core, { kind: 'created' }, { graceMs: 20 });
  await assert.rejects(done, (error: AppError) => {
    assert.equal(error.code, 'NO_CAPACITY');
    assert.match(error.message, /no node has 64 GiB of memory$/);
    return true;
  });
});

test('the grace ends with a node, the wait does not', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  using events = await serveEvents([{ ...NO_NODE, reason: null }, building(5)]);
  const { done, hasShown } = waitOn(events.core, { kind: 'created' }, { graceMs: 20, wholeMs: 300 });
  await hasShown(2);
  context.mock.timers.tick(300);
  await assert.rejects(done, (error: AppError) => {
    assert.equal(error.code, 'TIMED_OUT');
    assert.match(error.message, /^stopped waiting after 0 s: it is preparing: building debian:12, 5%$/);
    return true;
  });
});

test('what goes on is waited for, up to a limit of its own; what does not is not', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const limits = { stillMs: 2_000, wholeMs: 6_000 };
  using going = await serveEvents([building(0)]);
  const { done, hasShown } = waitOn(going.core, { kind: 'created' }, limits);
  for (const percent of [1, 2, 3]) {
    await hasShown(percent);
    context.mock.timers.tick(1_500);
    going.say(building(percent));
  }
  await hasShown(4);
  context.mock.timers.tick(1_500);
  await assert.rejects(done, {
    code: 'TIMED_OUT',
    message: 'stopped waiting after 6 s: it is preparing: building debian:12, 3%',
  });

  using stuck = await serveEvents([building(0)]);
  const waiting = waitOn(stuck.core, { kind: 'created' }, limits);
  await waiting.hasShown(1);
  context.mock.timers.tick(2_000);
  await assert.rejects(waiting.done, (error: AppError) => {
    assert.equal(error.message, 'nothing has changed for 2 s: it is preparing: building debian:12, 0%');
    assert.match(
      (error.details as { hint: string }).hint,
      /^it goes on without this command: "skerry instance show/,
    );
    return true;
  });
});

test('a time that is said is the time in all, and without one what changes is waited for', () => {
  assert.deepEqual(waitLimits({ waitTimeout: 5_000 }), { wholeMs: 5_000, stillMs: 5_000 });
  const { wholeMs, stillMs } = waitLimits({});
  assert.ok(stillMs < wholeMs && wholeMs < 2 ** 31);
});

test('a restart is over when it runs again, not while it still runs', async () => {
  const restartId = 'd'.repeat(64);
  using events = await serveEvents([
    { restart_id: restartId },
    { restart_id: restartId, phase: 'stopping' },
    { restart_id: restartId, phase: 'starting' },
    { restart_id: restartId, ipv6: '2001:db8::2' },
  ]);
  const { done, shown } = waitOn(events.core, { kind: 'restarted', restartId });
  assert.equal((await done).ipv6, '2001:db8::2');
  assert.deepEqual(shown, ['stopping', 'starting', 'running']);
});
