import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { CreateDataPlane, DataPlane, DataPlaneLimits, ListenPorts, RouteFailure } from '../../port.ts';

/** Two instances on this machine: loopback has one IPv6 address, but IPv4 loopback can be written as IPv6 too. */
export const ADDRESS_A = '::1';
export const ADDRESS_B = '::ffff:127.0.0.2';
/** Nothing listens there. */
export const ADDRESS_DEAD = '::ffff:127.0.0.9';

export const NAME_A = 'farm-manage-desk-seek.skerry.localhost';
export const NAME_B = 'glue-style-coin-renew.skerry.localhost';
export const NAME_DEAD = 'team-hospital-room-run.skerry.localhost';
export const NAME_UNKNOWN = 'zoo-zoo-zoo-zoo.skerry.localhost';

export const ROUTES = [
  { hostname: NAME_A, ipv6: ADDRESS_A },
  { hostname: NAME_B, ipv6: ADDRESS_B },
  { hostname: NAME_DEAD, ipv6: ADDRESS_DEAD },
];

/** What an instance does with a connection is up to each test. */
export interface Instance {
  handle: (socket: Socket) => void;
  readonly sockets: Set<Socket>;
}

export interface World extends AsyncDisposable {
  readonly plane: DataPlane;
  readonly ports: ListenPorts;
  /** Port 443 and port 80 of the instances A and B. */
  readonly tlsA: Instance;
  readonly tlsB: Instance;
  readonly httpA: Instance;
  readonly httpB: Instance;
  readonly upstreamHttpPort: number;
  readonly upstreamHttpsPort: number;
}

interface ListeningInstance extends Instance {
  readonly server: Server;
  readonly port: number;
}

async function listenInstance(host: string, port: number): Promise<ListeningInstance> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    instance.handle(socket);
  });
  server.listen({ host, port });
  await once(server, 'listening');
  const handle = (socket: Socket) => void socket.destroy();
  const instance = { handle, sockets, server, port: (server.address() as AddressInfo).port };
  return instance;
}

const MAX_PORT_TRIES = 20;

/** The same free port on both addresses. */
async function listenPair(): Promise<[ListeningInstance, ListeningInstance]> {
  for (let tries = 1; ; tries++) {
    const a = await listenInstance(ADDRESS_A, 0);
    try {
      return [a, await listenInstance(ADDRESS_B, a.port)];
    } catch (error) {
      a.server.close();
      if (tries === MAX_PORT_TRIES) throw error;
    }
  }
}

export const EXPLANATION_CODES = {
  not_routed: 'HOSTNAME_NOT_FOUND',
  refused: 'INSTANCE_UNREACHABLE',
  unreachable: 'INSTANCE_UNREACHABLE',
  connect_timeout: 'INSTANCE_TIMED_OUT',
  response_timeout: 'INSTANCE_TIMED_OUT',
  broken: 'INSTANCE_UNREACHABLE',
  gateway_full: 'OVERLOADED',
} as const satisfies Record<RouteFailure, string>;

/** A data plane with two instances behind it, all on loopback. */
export async function openWorld(
  create: CreateDataPlane,
  limits: Partial<DataPlaneLimits> = {},
): Promise<World> {
  const [tlsA, tlsB] = await listenPair();
  const [httpA, httpB] = await listenPair();
  const plane = create({
    hosts: ['127.0.0.1', '::1'],
    httpPort: 0,
    httpsPort: 0,
    upstreamHttpPort: httpA.port,
    upstreamHttpsPort: tlsA.port,
    explain: (hostname, failure) => ({
      code: EXPLANATION_CODES[failure],
      message: `${hostname}: ${failure}`,
    }),
    limits,
  });
  plane.replaceTable(ROUTES);
  const ports = await plane.listen();
  const instances = [tlsA, tlsB, httpA, httpB];
  return {
    plane,
    ports,
    tlsA,
    tlsB,
    httpA,
    httpB,
    upstreamHttpPort: httpA.port,
    upstreamHttpsPort: tlsA.port,
    async [Symbol.asyncDispose]() {
      await plane.close();
      for (const { server, sockets } of instances) {
        for (const socket of sockets) socket.destroy();
        server.close();
        await once(server, 'close');
      }
    },
  };
}

/** A plain connection to the data plane, open when it is returned. Its errors show as `close`. */
export async function openClient(port: number, host = '127.0.0.1', from?: string): Promise<Socket> {
  const options = { host, port, noDelay: true, allowHalfOpen: true };
  const socket = connect(from === undefined ? options : { ...options, localAddress: from });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/**
 * A connection that is ended without a word; its reset may come before anybody here knows that it was open. So ends one that never
 * speaks, too, after a while: what was counted tells why it was.
 */
export async function expectTurnedAway(port: number, from = '127.0.0.1'): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from });
  assert.equal((await readLeft(socket)).length, 0);
}

/** All that the other side sends until its end, which leaves our side open; rejects where the connection breaks first. */
export function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('end', () => resolve(Buffer.concat(chunks)));
    socket.once('close', () => reject(socket.errored ?? new Error('closed without an end')));
    socket.resume();
  });
}

/** All that the other side sends until the connection is closed, in whatever way. */
export async function readLeft(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await endingOf(socket);
  return Buffer.concat(chunks);
}

/** Something came, or nothing more will. */
async function hearFrom(socket: Socket): Promise<void> {
  const heard = new AbortController();
  const { signal } = heard;
  const events = ['readable', 'end', 'close'].map((event) => once(socket, event, { signal }));
  await Promise.race(events).finally(() => heard.abort());
}

/** Reads until `count` bytes are there, and leaves the socket paused. Throws where fewer come. */
export async function readBytes(socket: Socket, count: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < count) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) {
      if (socket.closed || socket.readableEnded) throw new Error('it ended before all was there');
      await hearFrom(socket);
      continue;
    }
    chunks.push(chunk);
    length += chunk.length;
  }
  return Buffer.concat(chunks);
}

/** How a connection ended: `reset` with an error, `end` in order. */
export async function endingOf(socket: Socket): Promise<'end' | 'reset'> {
  let reset = socket.errored !== null;
  socket.on('error', () => {
    reset = true;
  });
  socket.resume();
  // The end may have come before anybody looked.
  if (socket.readableEnded) socket.end();
  else socket.on('end', () => socket.end());
  if (!socket.closed) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return reset ? 'reset' : 'end';
}

const POLL_MS = 5;
/** Only what hangs takes as long. */
const HANG_MS = 100_000;

/** Waits until something holds; fails where it never does. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  deadlineMs = HANG_MS,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
