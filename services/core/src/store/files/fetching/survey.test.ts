import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Survey } from './survey.ts';

const { signal } = new AbortController();
const log = createLogger('test', 'silent');
const SECOND_MS = 1_000;

test('rejected messages that lack no file are gone through no faster than those that do', async () => {
  let nowMs = 1_000_000;
  let rounds = 0;
  const asked: number[] = [];
  const survey = new Survey({
    source: {
      ...{ name: 'a peer', handles: () => true, open: async () => undefined },
      findHeld: async (names) => {
        asked.push(names.length);
        return { held: [] };
      },
    },
    swept: {
      ...{ names: [], skip: () => {}, wake: () => {} },
      round: async () => {
        rounds++;
        return true;
      },
    },
    ...{ now: () => nowMs, log },
  });
  const runFor = async (seconds: number, waiting: readonly string[] = []) => {
    for (let second = 0; second < seconds; second++) {
      survey.ask(waiting, signal);
      await survey.idle();
      nowMs += SECOND_MS;
    }
  };
  await runFor(10);
  assert.deepEqual([rounds, asked], [10, []]);
  await runFor(10, ['ab'.repeat(32)]);
  assert.deepEqual([rounds, asked], [20, [1]]);
});
