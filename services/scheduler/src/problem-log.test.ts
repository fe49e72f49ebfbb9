import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { ProblemLog } from './problem-log.ts';

test('what is not in order for a while is logged once, and when it is over', () => {
  const lines: string[] = [];
  const log = new ProblemLog(createLogger('test', 'info', { write: (line) => void lines.push(line) }));
  const cutOff = { code: 'CUT_OFF', message: 'most compute nodes are unreachable', since_ms: 1_000 };
  const shared = (prefix: string) => ({ code: 'PREFIX_SHARED', message: prefix, since_ms: 1_000 });
  const waiting = (count: number) => ({ code: 'INSTANCES_WAITING', message: `${count}`, since_ms: 31_000 });
  const told = (atMs: number, ...problems: (typeof cutOff)[]) => {
    log.tell(problems, atMs);
    return lines.splice(0).map((line) => {
      const { level, code, why, seconds } = JSON.parse(line) as Record<string, unknown>;
      return [level, code, why ?? seconds];
    });
  };
  assert.deepEqual(told(30_999, cutOff), []);
  assert.deepEqual(told(31_000, cutOff, shared('a'), shared('b')), [
    [40, 'CUT_OFF', cutOff.message],
    [40, 'PREFIX_SHARED', 'a'],
    [40, 'PREFIX_SHARED', 'b'],
  ]);
  assert.deepEqual(told(41_000, cutOff, shared('b'), waiting(1)), [[30, 'PREFIX_SHARED', 40]]);
  assert.deepEqual(told(61_000, cutOff, shared('b'), waiting(2)), [[40, 'INSTANCES_WAITING', '2']]);
  assert.deepEqual(told(71_000, cutOff, shared('b'), waiting(3)), []);
  // A clock that was set back meanwhile.
  assert.deepEqual(told(0), [
    [30, 'CUT_OFF', 0],
    [30, 'PREFIX_SHARED', 0],
    [30, 'INSTANCES_WAITING', 0],
  ]);
});
