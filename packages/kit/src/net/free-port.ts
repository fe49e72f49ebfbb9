import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { createServer } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import { findListenFailure } from '../http/listen.ts';

/** Below the range that systems give out by themselves: nobody gets such a port between now and when it is used. */
const CHOSEN = { first: 20_000, count: 10_000 } as const;
const CHOICES_MAX = 100;
/** Of a port that another one may do for. */
const TAKEN: readonly (string | undefined)[] = ['EADDRINUSE', 'EACCES'];

const chooseAny = () => CHOSEN.first + randomInt(CHOSEN.count);

/**
 * A port that nobody listens on, by TCP or by UDP. No other process that asks is given it while this one lives. Throws PORT_IN_USE where
 * there is none, and what else keeps this machine from listening.
 *
 * @param choose the next port to try
 */
export async function findFreePort(choose: () => number = chooseAny): Promise<number> {
  for (let choice = 0; choice < CHOICES_MAX; choice++) {
    const port = choose();
    if (!(await reserve(port))) continue;
    const failure = (await findListenFailure(port)) ?? (await findDatagramFailure(port));
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

/** Why datagrams cannot be received at a port, on any address; undefined where they can. */
async function findDatagramFailure(port: number): Promise<NodeJS.ErrnoException | undefined> {
  const failure = await tryToReceive(createSocket('udp4'), port);
  if (failure) return failure;
  const onIpv6 = await tryToReceive(createSocket({ type: 'udp6', ipv6Only: true }), port);
  return onIpv6?.code === 'EADDRINUSE' ? onIpv6 : undefined;
}

async function tryToReceive(socket: Socket, port: number): Promise<NodeJS.ErrnoException | undefined> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | undefined>();
  socket.once('error', resolve).bind(port, () => resolve(undefined));
  const failure = await promise;
  socket.close();
  return failure;
}
