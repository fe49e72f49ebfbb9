import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import fc from 'fast-check';
import { inDirectory } from '../../testing/directory.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import { fits, mayFit, readFilters } from './filters.ts';
import { Keeper, type KeeperOptions, restMs } from './keeper.ts';
import { runStanding, type StandingOptions } from './open.ts';
import {
  add,
  CallRate,
  EMPTY,
  keepOnly,
  listDue,
  parseQueueState,
  postpone,
  putOff,
  type QueueState,
  remove,
  renderQueueState,
} from './queue.ts';

const MESSAGE = {
  ...{ item_hash: 'a', sender: '0xAbc', type: 'POST', channel: 'news', chain: 'ETH' },
  content: { type: 'note', address: '0xAbc', content: { tags: ['x'], count: 1 } },
};
const EVENT = {
  ...{ item_hash: 'a', sender: '0xabc', type: 'POST', channel: 'news', timestamp: 1, content_type: 'note' },
};

describe('filters of messages', () => {
  const cases: readonly [object, boolean][] = [
    [{ sender: '0xABC' }, true],
    [{ channel: 'news', type: 'POST', chain: 'ETH' }, true],
    [{ content: { type: 'note' } }, true],
    [{ content: { content: { count: 1 } }, sender: null }, true],
    [{ content: { content: { count: 2 } } }, false],
    [{ channel: 'other', type: 'POST' }, false],
    [{ sender: '0xabcd' }, false],
    [{ content: { toString: 1 } }, false],
    [{ unknown: 'x' }, false],
    [{}, false],
  ];
  for (const [filter, expected] of cases)
    test(JSON.stringify(filter), () => {
      const filters = readFilters([filter]);
      assert.equal(fits(MESSAGE, filters), expected);
      if (expected) assert.ok(mayFit(EVENT, filters), 'a message that fits is read');
    });

  test('what strangers write as filters is no reason to fail', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (junk) => {
        const filters = readFilters(junk);
        assert.ok(filters.length <= PROGRAM_LIMITS.messageFilters);
        if (fits(MESSAGE, filters)) assert.ok(mayFit(EVENT, filters));
      }),
    );
  });
});

describe('messages that wait', () => {
  const fill = (count: number, program = 'p') => {
    let state: QueueState = EMPTY;
    for (let index = 0; index < count; index++) state = add(state, program, String(index)) ?? state;
    return state;
  };

  test('each waits once; beyond the limit of a program it is left out, and others have room', () => {
    assert.equal(fill(3).waiting.length, 3);
    assert.equal(add(fill(3), 'p', '0')!.waiting.length, 3);
    const full = fill(PROGRAM_LIMITS.messagesPerProgram + 5);
    assert.equal(full.waiting.length, PROGRAM_LIMITS.messagesPerProgram);
    assert.equal(add(full, 'p', 'new'), undefined);
    assert.ok(add(full, 'q', 'new'));
    assert.equal(keepOnly(add(full, 'q', 'new')!, new Set(['q'])).waiting.length, 1);
  });

  test('where all have no room, the program that has most gives way', () => {
    let state = fill(PROGRAM_LIMITS.messagesPerProgram);
    for (let index = 0; state.waiting.length < PROGRAM_LIMITS.messages; index++)
      state = add(state, `q${index % 40}`, String(index))!;
    const countOf = (program: string) => state.waiting.filter((one) => one.program === program).length;
    for (let count = 1; count <= 3; count++) {
      state = add(state, 'r', String(count))!;
      assert.equal(countOf('r'), count);
      assert.equal(countOf('p'), PROGRAM_LIMITS.messagesPerProgram - count);
      assert.equal(state.waiting.length, PROGRAM_LIMITS.messages);
    }
    assert.equal(state.waiting[0]!.message, '0', 'its oldest ones are kept');
    assert.equal(add(state, 'p', 'new'), undefined, 'it takes no room from others');
  });

  test('of a program one at a time, the oldest first; a failure waits longer each time and ends', () => {
    let state = add(fill(2), 'q', '0')!;
    const due = (nowMs: number, busy: string[] = []) =>
      listDue(state, new Set(busy), new CallRate(), nowMs).map(({ program, message }) => program + message);
    assert.deepEqual(due(0), ['p0', 'q0']);
    assert.deepEqual(due(0, ['p']), ['q0']);
    const rests: number[] = [];
    for (let nowMs = 0; state.waiting[0]!.message === '0' && state.waiting[0]!.program === 'p'; ) {
      state = postpone(state, state.waiting[0]!, nowMs);
      const [first] = state.waiting;
      if (first!.message !== '0') break;
      rests.push(first!.dueAtMs - nowMs);
      assert.deepEqual(due(nowMs), ['q0'], 'order is kept: nothing of it overtakes');
      nowMs = first!.dueAtMs;
    }
    assert.equal(rests.length, PROGRAM_LIMITS.messageTries - 1);
    assert.ok(rests.every((rest, index) => index === 0 || rest === 2 * rests[index - 1]!));
    assert.deepEqual(due(0), ['p1', 'q0']);
    assert.equal(remove(state, state.waiting[0]!).waiting.length, 1);
  });

  test('one that a program could not be called with waits longer each time, and no clock is part of what is kept', () => {
    let state = postpone(fill(1), fill(1).waiting[0]!, 0);
    const rests: number[] = [];
    for (let tries = 0; tries < 2 * PROGRAM_LIMITS.messageTries; tries++) {
      state = putOff(state, state.waiting[0]!, tries);
      rests.push(state.waiting[0]!.dueAtMs - tries);
    }
    assert.deepEqual(rests.slice(0, 3), [10_000, 20_000, 40_000]);
    assert.equal(rests.at(-1), PROGRAM_LIMITS.messageAwayMaxMs);
    assert.equal(state.waiting[0]?.failures, 1);
    assert.deepEqual(listDue(state, new Set(), new CallRate(), 0), []);
    const later = parseQueueState(JSON.parse(renderQueueState(state)));
    assert.deepEqual(later.waiting, [{ program: 'p', message: '0', failures: 1, dueAtMs: 0, delays: 0 }]);
  });

  test('a program that was called comes after those that were not', () => {
    const rate = new CallRate();
    const state = add(fill(2), 'q', '0')!;
    const order = () => listDue(state, new Set(), rate, 1_000_000).map(({ program }) => program);
    assert.deepEqual(order(), ['p', 'q']);
    rate.note('p', 1);
    assert.deepEqual(order(), ['q', 'p']);
    rate.note('q', 2);
    assert.deepEqual(order(), ['p', 'q']);
  });

  test('calls of a program are counted by the minute, so that no loop grows', () => {
    const rate = new CallRate();
    const state = fill(10);
    let calls = 0;
    for (let nowMs = 0; nowMs < 120_000; nowMs += 10)
      if (listDue(state, new Set(), rate, nowMs).length > 0) {
        rate.note('p', nowMs);
        calls++;
      }
    assert.equal(calls, 2 * PROGRAM_LIMITS.messageCallsPerMinute);
  });
});

test('a program that ends is started again after longer and longer rests', () => {
  assert.deepEqual([1, 2, 3].map(restMs), [1_000, 2_000, 4_000]);
  assert.equal(restMs(1_000), PROGRAM_LIMITS.keptRestartMaxMs);
});

test('while the core node lacks what its peers have, it is not asked what this node is to run', () =>
  inDirectory(async (dataDir) => {
    const ending = new AbortController();
    const checked = Promise.withResolvers<void>();
    let asked = 0;
    const options = {
      ...{ programs: {}, nodeId: 'f'.repeat(64), dataDir, signal: ending.signal },
      log: createLogger('test', 'silent'),
      core: {
        async listAssignedPrograms() {
          asked++;
          checked.resolve();
          return { programs: [], cursor: '' };
        },
      },
      sync: {
        async check() {
          checked.resolve();
          return 'it is still fetching';
        },
      },
    } as unknown as StandingOptions;
    const running = runStanding(options);
    await checked.promise;
    ending.abort();
    await running;
    assert.equal(asked, 0);
  }));

test('whatever keeps a program from being started, it is tried again', async () => {
  const ending = new AbortController();
  const failures = [
    Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }),
    new TypeError('on purpose'),
  ];
  const said: string[] = [];
  const programs = {
    async keep(_hash: string, signal: AbortSignal) {
      const failure = failures.shift();
      if (failure) throw failure;
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
    logs: { find: () => ({ tail: { add: (_type: string, text: string) => said.push(text) } }) },
  } as unknown as KeeperOptions['programs'];
  const log = createLogger('test', 'silent');
  const keeper = new Keeper({ programs, log, signal: ending.signal });
  keeper.set(new Set(['program']));
  await until('both were said', () => said.length === 2);
  assert.deepEqual(said, [
    "STORAGE_FULL: this node's disk is full; starting again",
    'INTERNAL: the node failed; starting again',
  ]);
  ending.abort();
  await keeper.settled();
});
