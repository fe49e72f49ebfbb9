import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LowPriority } from './low-priority.ts';

/** The next turn of the event loop. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Something shorter is expected, however long the test takes. */
function createExpecting(): LowPriority {
  const low = new LowPriority(() => 0);
  low.note();
  return low;
}

test('a few go one by one, in the order in which they came, a turn of the event loop each', async () => {
  const low = createExpecting();
  const gone: number[] = [];
  for (let n = 0; n < 4; n++) void low.turn().then(() => gone.push(n));
  await Promise.resolve();
  assert.deepEqual(gone, [], 'not in the turn in which they came');
  for (let n = 0; n < 4; n++) {
    await nextTurn();
    assert.deepEqual(
      gone,
      Array.from({ length: n + 1 }, (_, at) => at),
    );
  }
});

test('of a crowd a sixteenth goes at once; who comes back goes behind the others', async () => {
  const low = createExpecting();
  const gone: string[] = [];
  const come = async (name: string) => {
    await low.turn();
    gone.push(name);
  };
  const crowd = Array.from({ length: 64 }, (_, at) =>
    come(`${at}`).then(() => (at === 0 ? come('again') : undefined)),
  );
  await nextTurn();
  assert.deepEqual(gone, ['0', '1', '2', '3']);
  await Promise.all(crowd);
  assert.equal(gone.length, 65);
  assert.equal(gone.at(-1), 'again');
});

test('one that fails in its turn keeps nobody from theirs', async () => {
  const low = createExpecting();
  const failing = low.turn().then(() => Promise.reject(new Error('failed')));
  const next = low.turn();
  await assert.rejects(failing, /failed/);
  await next;
});

test('where nothing shorter came for a second, nobody waits; who came before goes first', async () => {
  let nowMs = 0;
  const low = new LowPriority(() => nowMs);
  const gone: string[] = [];
  const come = (name: string) => void low.turn().then(() => gone.push(name));
  come('alone');
  await Promise.resolve();
  assert.deepEqual(gone, ['alone']);
  low.note();
  nowMs = 999;
  come('behind');
  nowMs = 1_000;
  come('later');
  await Promise.resolve();
  assert.deepEqual(gone, ['alone']);
  await nextTurn();
  await nextTurn();
  assert.deepEqual(gone, ['alone', 'behind', 'later']);
  come('again');
  await Promise.resolve();
  assert.equal(gone.at(-1), 'again');
});
