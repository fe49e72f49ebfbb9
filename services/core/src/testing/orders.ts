import assert from 'node:assert/strict';
import { SeededDice } from '../sim/testing/dice.ts';
import { type Batches, lookAfter } from './arrivals.ts';
import type { TestCore } from './core.ts';
import { World } from './worlds.ts';

const SIZE_MIN = 12;
const SIZE_MORE = 25;
const AGAIN_MAX = 8;
const SMALL_BATCH_MAX = 5;

function drawBatches(dice: SeededDice, size: number): Batches {
  const drawn = Array.from({ length: size }, (_, index) => ({ index, place: dice.next() }));
  const order = drawn.toSorted((one, other) => one.place - other.place).map(({ index }) => index);
  const more = dice.chance(0.3) ? size : dice.below(AGAIN_MAX);
  for (let again = more; again > 0; again--) order.splice(dice.below(order.length), 0, dice.below(size));
  const length = 1 + dice.below(dice.chance(0.4) ? SMALL_BATCH_MAX : size);
  return Array.from({ length: Math.ceil(order.length / length) }, (_, at) =>
    order.slice(at * length, (at + 1) * length),
  );
}

/** Sends the messages of a world in many orders. Throws where one ends in another state than they do one by one. */
export async function compareOrders(core: TestCore, seed: number, orders: number): Promise<void> {
  const dice = new SeededDice(seed);
  const { sent } = new World(dice, SIZE_MIN + dice.below(SIZE_MORE));
  const expected = await lookAfter(
    core,
    sent,
    sent.map((_, index) => [index]),
  );
  for (let order = 0; order < orders; order++) {
    const batches = drawBatches(dice, sent.length);
    const seen = await lookAfter(core, sent, batches);
    try {
      assert.deepEqual(seen, expected);
    } catch (cause) {
      const { message } = cause as Error;
      throw new Error(`otherwise in the order ${JSON.stringify(batches)}\n${message}`, { cause });
    }
  }
}
