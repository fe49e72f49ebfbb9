import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { call } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { type InstanceView, NETWORK_POST } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { EVENTS_API } from '@skerry/protocol/api/core/events';
import { SYNC_API, type SyncStatusView } from '@skerry/protocol/api/core/sync';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { CoreStep } from './core-step.ts';
import { schedulerService } from './index.ts';
import { answersOf, IN_STEP, INSTANCE, send, takePost } from './testing/core.ts';
import { serve } from './testing/nodes.ts';

const log = createLogger('test', 'silent');

test('what was read while the core node lacked something is read again, and nothing is decided by it before', async () => {
  let lag: string | null = 'behind';
  const seen: (string | null)[] = [];
  const step: CoreStep = new CoreStep({
    check: async () => lag,
    onChange: () => seen.push(step.lag),
    log,
  });
  assert.notEqual(step.lag, null);
  const first = await step.begin();
  first.done();
  assert.deepEqual([step.lag, first.signal.aborted], ['behind', false]);
  lag = null;
  await step.look();
  assert.deepEqual([step.lag, first.signal.aborted], ['behind', true]);
  const second = await step.begin();
  assert.equal(step.lag, 'behind');
  second.done();
  await step.look();
  assert.deepEqual([step.lag, second.signal.aborted, seen.at(-1)], [null, false, null]);
  // It meets its peers again.
  lag = 'fetching';
  await step.look();
  assert.deepEqual([step.lag, second.signal.aborted, seen.at(-1)], ['fetching', false, 'fetching']);
  const third = await step.begin();
  lag = null;
  await step.look();
  third.done();
  assert.deepEqual([step.lag, third.signal.aborted], ['fetching', true]);
  (await step.begin()).done();
  assert.equal(step.lag, null);
  step.lost();
  assert.ok(step.isLost);
  const told = seen.length;
  await step.look();
  assert.deepEqual([step.isLost, seen.length], [false, told + 1]);
});

const FETCHING: SyncStatusView = {
  ...{ ...IN_STEP, state: 'syncing', behind: 2 },
  peers: IN_STEP.peers.map((peer) => ({ ...peer, state: 'syncing' })),
};
const APART: SyncStatusView = {
  ...{ ...IN_STEP, state: 'apart' },
  peers: IN_STEP.peers.map((peer) => ({ ...peer, state: 'failing' })),
};
const NEW = { ...INSTANCE, instance_id: 'c'.repeat(64) };
const PLACE = { node_id: 'd'.repeat(64), node_address: `0x${'d'.repeat(40)}`, ipv6: 'fd00::1' };

/** A core node, and a scheduler that goes by it. */
async function startBoth(stack: AsyncDisposableStack, status: SyncStatusView, instances: InstanceView[]) {
  const state = { status, instances, asked: 0 };
  const told: unknown[] = [];
  const streams = new Set<ServerResponse>();
  const core = stack.use(
    await serve(async (request, response) => {
      const { pathname } = new URL(request.url!, 'http://core');
      if (request.method === 'POST') {
        const { type, content } = await takePost(request, response);
        if (type === NETWORK_POST.allocation) told.push(content.instance_id);
      } else if (pathname === EVENTS_API.listEvents.path) {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        streams.add(response);
        response.on('close', () => streams.delete(response));
      } else if (pathname === SYNC_API.getSyncStatus.path) {
        state.asked++;
        send(response, state.status);
      } else if (pathname === NETWORK_LISTS_API.listNetworkPosts.path)
        send(response, { posts: [], pagination_per_page: 20 });
      else send(response, answersOf(state.instances)[pathname]);
    }),
  );
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-scheduler-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const config = { ...readConfig(schedulerService.config, {}), port: 0, coreUrl: core.url, dataDir };
  const host = { log, signal: new AbortController().signal };
  const { urls } = stack.use(await schedulerService.start(config, host));
  return Object.assign(state, {
    /** The instances that something was decided of. */
    told,
    streams,
    /** An event of the instance. */
    tell(data: InstanceView) {
      const event = { cursor: '6', kind: 'instance', time_ms: 1, data };
      for (const stream of streams) stream.write(`data: ${JSON.stringify(event)}\n\n`);
    },
    statusOf: () => call(urls[0]!, SCHEDULER_API.getSchedulerStatus, {}),
  });
}

const saysSo = ({ reasons }: { readonly reasons: readonly string[] }) =>
  reasons.some((reason) => /^nothing is decided for now: .*at least 2 messages are missing/.test(reason));

test('a scheduler decides nothing while its core node fetches what its peers have, says so, and then goes by what came', async () => {
  await using stack = new AsyncDisposableStack();
  // It was restored: it knows the instance, and not yet where that is.
  const both = await startBoth(stack, FETCHING, [INSTANCE]);
  const { leadership } = await until(
    'it has a plan, and says why it keeps it to itself',
    both.statusOf,
    saysSo,
  );
  assert.equal(leadership.can_lead, false);
  assert.deepEqual(both.told, []);
  Object.assign(both, { status: IN_STEP, instances: [{ ...INSTANCE, ...PLACE }, NEW] });
  await until('it decides what is left', () => both.told.length > 0);
  assert.deepEqual([...new Set(both.told)], [NEW.instance_id]);
  assert.equal((await both.statusOf()).leadership.can_lead, true);
});

test('a scheduler whose core node is cut off decides, but nothing of what comes from peers that the node meets again', async () => {
  await using stack = new AsyncDisposableStack();
  const both = await startBoth(stack, IN_STEP, []);
  await until('it leads', both.statusOf, ({ leadership }) => leadership.can_lead);
  both.status = APART;
  const { asked } = both;
  for (const stream of both.streams) stream.destroy();
  await until('it knows that the node is cut off', () => both.asked > asked && both.streams.size > 0);
  both.tell(NEW);
  await until('it goes on', () => both.told.length > 0);
  assert.deepEqual([...new Set(both.told)], [NEW.instance_id]);
  both.status = FETCHING;
  both.tell(INSTANCE);
  await until('it holds back', both.statusOf, saysSo);
  Object.assign(both, { status: IN_STEP, instances: [{ ...INSTANCE, ...PLACE }, NEW] });
  await until('it goes by what came', both.statusOf, ({ leadership }) => leadership.can_lead);
  assert.deepEqual([...new Set(both.told)], [NEW.instance_id]);
});
