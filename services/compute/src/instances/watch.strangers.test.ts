import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type { InstanceView } from '@skerry/protocol';
import { type WatchOptions, watchInstances } from './watch.ts';

const NODE = 'f'.repeat(64);
const ID = 'a'.repeat(64);
const VIEW = { instance_id: ID, node_id: NODE, phase: 'running' } as InstanceView;

let ending: AbortController;
beforeEach(() => {
  ending = new AbortController();
});
afterEach(() => ending.abort());

/**
 * A node with one instance, and what it does with it.
 * @param events what the core node tells of, each time that it is followed
 */
function watch(events: readonly object[], status: string) {
  const heard: string[] = [];
  const instances = {
    find: (id: string) => (id === ID ? {} : undefined),
    list: () => [],
    applyAll: async (views: readonly InstanceView[]) => void heard.push(`all ${views.length}`),
    forget: async () => void heard.push('forgotten'),
  };
  const core = {
    readAllInstances: async () => ({ instances: [VIEW], unreadable: [], cursor: '' }),
    getMessageStatus: async () => ({ status }),
    async *events({ signal }: { signal: AbortSignal }) {
      yield* events;
      heard.push('end');
      await once(signal, 'abort');
    },
  };
  const done = watchInstances({
    ...{ core, instances, nodeId: NODE, signal: ending.signal, log: createLogger('test', 'silent') },
    onAggregate() {},
  } as unknown as WatchOptions);
  return { heard, done };
}

test('an instance that a core node has no more is forgotten only where it knows that the owner took it back', async () => {
  for (const [status, expected] of [
    ['processed', ['all 1', 'end']],
    ['forgotten', ['all 1', 'forgotten', 'end']],
  ] as const) {
    ending = new AbortController();
    const { heard, done } = watch([{ kind: 'instance_removed', data: { instance_id: ID } }], status);
    await until('all was heard', () => heard.includes('end'));
    assert.deepEqual(heard, expected);
    ending.abort();
    await done;
  }
});
