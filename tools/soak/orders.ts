import { endTestServer } from '@skerry/database/testing';
import { createTestCore } from '../../services/core/src/testing/core.ts';
import { compareOrders } from '../../services/core/src/testing/orders.ts';
import type { SoakOptions } from './options.ts';
import { assertEach } from './run/counts.ts';

/** In which the messages of one world come. */
const ORDERS = 8;
/** How often it is told how far it has come, in worlds. */
const TOLD_EVERY = 50;

/** Worlds of messages, each in many orders, for so many seconds, or so many worlds (`--seeds N`); every other one with credit enforced. */
export async function soakOrders({ seconds, seed, seeds }: SoakOptions): Promise<void> {
  const count = seeds ?? Number.POSITIVE_INFINITY;
  const startMs = performance.now();
  const endMs = seeds === undefined ? startMs + seconds * 1000 : Number.POSITIVE_INFINITY;
  await using stack = new AsyncDisposableStack();
  stack.defer(endTestServer);
  const free = stack.use(await createTestCore());
  const charged = stack.use(await createTestCore({ creditEnforcement: true }));
  const bad: number[] = [];
  let worlds = 0;
  for (; worlds < count && performance.now() < endMs; worlds++) {
    if (worlds > 0 && worlds % TOLD_EVERY === 0) console.log(`${worlds} worlds, ${bad.length} with faults`);
    const own = seed + worlds;
    try {
      await compareOrders(own % 2 === 0 ? free : charged, own, ORDERS);
    } catch (error) {
      bad.push(own);
      console.log(
        `FAULT ${(error as Error).message}\n  again: npm run soak -- orders --seed ${own} --seeds 1`,
      );
    }
  }
  console.log(
    `${worlds} worlds from ${seed} on, each in ${ORDERS} orders, ${bad.length} with faults ${bad.join(' ')}`,
  );
  assertEach({ worlds });
  if (bad.length > 0) process.exitCode = 1;
}
