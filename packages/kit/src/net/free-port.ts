import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import { findListenFailure } from '../http/listen.ts';

/** Below the range that systems give out by themselves: nobody gets such a port between now and when it is used. */
const CHOSEN = { first: 20_000, count: 10_000 } as const;
const CHOICES_MAX = 100;
/** Of a port that another one may do for. */
const TAKEN: readonly (string | undefined)[] = ['EADDRINUSE', 'EACCES'];

/**
 * A port that nobody listens on. No other process that asks is given it while this one lives. Throws PORT_IN_USE where there is none,
 * and what else keeps this machine from listening.
 */
export async function findFreePort(): Promise<number> {
  for (let choice = 0; choice < CHOICES_MAX; choice++) {
    const port = CHOSEN.first + randomInt(CHOSEN.count);
    if (!(await reserve(port))) continue;
    const failure = await findListenFailure(port);
    if (failure === undefined) return port;
    if (!TAKEN.includes(failure.code)) throw failure;
  }
  throw new AppError('PORT_IN_USE', `ports from ${CHOSEN.first} are in use`);
}

/** By a name of Linux's that ends with the process (unix(7), abstract sockets). Elsewhere chance has to do. */
async function reserve(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const name = createServer().unref();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  name.once('error', () => resolve(false)).listen(`\0skerry-port-${port}`, () => resolve(true));
  return promise;
}
