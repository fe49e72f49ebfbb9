import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type { InstanceView } from '@skerry/protocol';
import { checkCaughtUp } from '../caught-up.ts';
import { Instances, type InstancesOptions } from './instances.ts';
import { type WatchOptions, watchInstances } from './watch.ts';

const NODE = 'f'.repeat(64);
const ID = 'a'.repeat(64);
const viewOf = (more: Partial<InstanceView> = {}) =>
  ({ instance_id: ID, node_id: NODE, phase: 'running', ...more }) as InstanceView;
const MOVED = viewOf({ node_id: 'e'.repeat(64) });

let ending: AbortController;
beforeEach(() => {
  ending = new AbortController();
});
afterEach(() => ending.abort());

/**
 * A node with one instance, and what it does with it.
 * @param lag why nothing is to be decided by what the core node says, each time that it is asked
 * @param events what the core node tells of, each time that it is followed
 * @param unlisted what is here and not in the list of the core node, which says that it moved
 */
function watch(
  lag: () => string | null,
  events: readonly object[],
  status = 'processed',
  unlisted: readonly string[] = [],
) {
  const heard: string[] = [];
  const instances = {
    has: (id: string) => id === ID,
    ids: () => unlisted,
    applyAll: async (views: readonly InstanceView[]) => void heard.push(`all ${views.length}`),
    apply: async ({ instance_id: id }: InstanceView) => void heard.push(id === ID ? 'moved' : 'of another'),
    forget: async () => void heard.push('forgotten'),
  };
  const core = {
    readAllInstances: async () => ({ instances: [viewOf()], unreadable: [], cursor: '' }),
    getInstance: async (id: string) => ({ ...MOVED, instance_id: id }),
    getMessageStatus: async () => ({ status }),
    async *events({ signal }: { signal: AbortSignal }) {
      yield* events;
      heard.push('end');
      await once(signal, 'abort');
    },
  };
  const done = watchInstances({
    ...{ core, instances, nodeId: NODE, signal: ending.signal, log: createLogger('test', 'silent') },
    ...{ sync: { check: async () => lag() }, onAggregate() {} },
  } as unknown as WatchOptions);
  return { heard, done };
}

test('a core node that is fetching what its peers have is not gone by: an instance is where it was once', async () => {
  let [asked, lag]: [number, string | null] = [0, 'it is still fetching'];
  const { heard } = watch(() => {
    asked++;
    return lag;
  }, []);
  await until('it was asked again, or is followed', () => asked > 1 || heard.length > 0);
  assert.equal(heard.length, 0);
  lag = null;
  await until('it is followed', () => heard.includes('end'));
  assert.deepEqual(heard, ['all 1', 'end']);
});

test('one that meets its peers again moves nothing until it has what they have', async () => {
  const lags = [null, 'it is still fetching', null, null];
  const { heard } = watch(
    () => lags.shift() ?? null,
    [
      { kind: 'instance', data: viewOf({ instance_id: 'b'.repeat(64), node_id: null }) },
      { kind: 'instance', data: MOVED },
    ],
  );
  await until('it is followed', () => heard.includes('end'));
  assert.deepEqual(heard, ['all 1', 'of another', 'all 1', 'of another', 'moved', 'end']);
});

test('nor ends what it says was forgotten: by what it lacks, that may not count', async () => {
  const lags = [null, 'it is still fetching', null, null];
  const { heard } = watch(
    () => lags.shift() ?? null,
    [{ kind: 'instance_removed', data: { instance_id: ID } }],
    'forgotten',
  );
  await until('it is followed', () => heard.includes('end'));
  assert.deepEqual(heard, ['all 1', 'all 1', 'forgotten', 'end']);
});

test('nobody has the node ask it meanwhile', async () => {
  let asked = 0;
  const ask = async () => {
    asked++;
    return MOVED;
  };
  const sync = { isInStep: false, check: async () => 'it is still fetching' };
  const checkLag = () => checkCaughtUp(sync);
  const instances = new Instances({ nodeId: NODE, deps: { checkLag } } as unknown as InstancesOptions);
  const refusal = { code: 'UPSTREAM_UNAVAILABLE', message: 'it is still fetching' };
  await assert.rejects(instances.look(ID, ask), refusal);
  assert.equal(asked, 0);
});

test('an instance that a core node has no more is forgotten only where it knows that the owner took it back', async () => {
  for (const [status, expected] of [
    ['processed', ['all 1', 'end']],
    ['forgotten', ['all 1', 'forgotten', 'end']],
  ] as const) {
    ending = new AbortController();
    const { heard, done } = watch(
      () => null,
      [{ kind: 'instance_removed', data: { instance_id: ID } }],
      status,
    );
    await until('all was heard', () => heard.includes('end'));
    assert.deepEqual(heard, expected);
    ending.abort();
    await done;
  }
});

test('what is here and not in its list is asked for, with or without a record', async () => {
  const { heard } = watch(() => null, [], 'processed', [ID, 'c'.repeat(64)]);
  await until('all was heard', () => heard.includes('end'));
  assert.deepEqual(heard, ['all 1', 'of another', 'end']);
});
