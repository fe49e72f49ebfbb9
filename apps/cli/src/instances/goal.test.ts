import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceView } from '@skerry/protocol';
import { RUNNING } from '../testing/run.ts';
import { decideGoal, type Goal } from './goal.ts';

const RESTART = 'd'.repeat(64);
const view = (changes: Partial<InstanceView>): InstanceView => ({ ...RUNNING, ...changes });
const decide = (goal: Goal, changes: Partial<InstanceView>, moved = true) =>
  decideGoal(goal, view(changes), moved);

test('created: running or failed', () => {
  const goal = { kind: 'created' } as const;
  assert.equal(decide(goal, { phase: 'running' }), 'reached');
  assert.equal(decide(goal, { phase: 'failed' }), 'failed');
  for (const phase of ['scheduled', 'preparing', 'starting'] as const)
    assert.equal(decide(goal, { phase }), 'going');
});

test('started: an old failure says nothing, and running does not count while it is meant to stop', () => {
  const goal = { kind: 'started' } as const;
  assert.equal(decide(goal, { phase: 'running' }, false), 'reached');
  assert.equal(decide(goal, { phase: 'running', desired: 'stopped' }), 'going');
  assert.equal(decide(goal, { phase: 'failed' }, false), 'going');
  assert.equal(decide(goal, { phase: 'failed' }, true), 'failed');
});

test('restarted: running again, not still', () => {
  const goal = { kind: 'restarted', restartId: RESTART } as const;
  assert.equal(decide(goal, { restart_id: RESTART }, false), 'going');
  assert.equal(decide(goal, { restart_id: RESTART, phase: 'stopping' }, true), 'going');
  assert.equal(decide(goal, { restart_id: RESTART }, true), 'reached');
  assert.equal(decide(goal, { restart_id: null }, true), 'going');
  assert.equal(decide(goal, { restart_id: RESTART, phase: 'failed' }, true), 'failed');
});

test('stopped: also where it was never placed', () => {
  const goal = { kind: 'stopped' } as const;
  assert.equal(decide(goal, { desired: 'stopped' }), 'going');
  assert.equal(decide(goal, { desired: 'stopped', phase: 'stopped' }), 'reached');
  assert.equal(decide(goal, { desired: 'running', phase: 'stopped' }), 'going');
  assert.equal(decide(goal, { desired: 'stopped', phase: 'scheduled', node_id: null }), 'reached');
});
