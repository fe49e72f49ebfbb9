import { createServer, type Server, type Socket } from 'node:net';
import { ALERT, alertRecord } from '../../tls/alert.ts';
import { ClientHelloReader, type HelloAnswer } from '../../tls/client-hello.ts';
import type { DataPlaneLimits, TlsOutcome } from '../port.ts';
import { connectInstance } from './connect.ts';
import { linger } from './linger.ts';
import { relay } from './relay.ts';
import type { RouteTable } from './routes.ts';

export interface TlsListenerOptions {
  readonly routes: RouteTable;
  readonly upstreamPort: number;
  readonly limits: DataPlaneLimits;
  readonly counters: TlsCounters;
}

export interface TlsCounters {
  readonly outcomes: Record<TlsOutcome, number>;
  bytesToInstances: number;
  bytesToClients: number;
}

export interface TlsListener {
  readonly server: Server;
  readonly connections: ReadonlySet<Socket>;
}

type DecidedAnswer = Exclude<HelloAnswer, { kind: 'need_more' }>;

/** A connection whose ClientHello is not complete yet. */
interface Undecided {
  readonly socket: Socket;
  readonly giveUp: (outcome: TlsOutcome) => void;
}

/** A server that reads the server name of each connection and passes the bytes, untouched, to the instance of that name. */
export function createTlsListener(options: TlsListenerOptions): TlsListener {
  const { limits } = options;
  const connections = new Set<Socket>();
  const undecided = new Set<Undecided>();
  const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    // Its close follows, and that is what everything here acts on.
    socket.on('error', () => {});
    awaitHello(socket, undecided, options);
    if (undecided.size > limits.maxUndecided) {
      const [oldest] = undecided;
      oldest?.giveUp('crowded_out');
    }
  });
  server.maxConnections = limits.maxConnections;
  return { server, connections };
}

function awaitHello(socket: Socket, undecided: Set<Undecided>, options: TlsListenerOptions): void {
  const reader = new ClientHelloReader();
  const settle = () => {
    clearTimeout(deadline);
    undecided.delete(entry);
    socket.off('data', onData).off('close', onGone).off('end', onGone);
  };
  const giveUp = (outcome: TlsOutcome) => {
    settle();
    options.counters.outcomes[outcome]++;
    socket.destroy();
  };
  const onGone = () => giveUp('gone');
  const onData = (chunk: Buffer) => {
    const answer = reader.push(chunk);
    if (answer.kind === 'need_more') return;
    socket.pause();
    settle();
    act(socket, answer, reader.bytes, options);
  };
  const entry: Undecided = { socket, giveUp };
  // From the first moment to the complete hello, however many bytes keep coming.
  const deadline = setTimeout(() => giveUp('hello_timeout'), options.limits.helloTimeoutMs);
  undecided.add(entry);
  socket.on('data', onData).on('close', onGone).on('end', onGone);
}

function act(socket: Socket, answer: DecidedAnswer, hello: Uint8Array, options: TlsListenerOptions): void {
  const { outcomes } = options.counters;
  switch (answer.kind) {
    case 'server_name': {
      const ipv6 = options.routes.get(answer.serverName);
      if (ipv6 === undefined) {
        outcomes.unknown_name++;
        refuse(socket, alertRecord(ALERT.unrecognizedName));
      } else {
        relayTo(ipv6, socket, hello, options);
      }
      break;
    }
    case 'no_server_name':
      outcomes.no_server_name++;
      refuse(socket, alertRecord(ALERT.unrecognizedName));
      break;
    case 'malformed':
      outcomes.malformed++;
      refuse(socket, alertRecord(ALERT.decodeError));
      break;
    case 'not_tls':
      outcomes.not_tls++;
      refuse(socket);
      break;
  }
}

function refuse(socket: Socket, alert?: Uint8Array): void {
  if (alert) socket.end(alert);
  else socket.end();
  linger(socket, () => socket.destroy());
}

function relayTo(ipv6: string, client: Socket, hello: Uint8Array, options: TlsListenerOptions): void {
  const { upstreamPort, limits, counters } = options;
  const instance = connectInstance({
    ipv6,
    port: upstreamPort,
    timeoutMs: limits.connectTimeoutMs,
    halfOpen: true,
  });
  let connected = false;
  instance.on('error', () => {});
  client.once('close', () => {
    counters.bytesToInstances += client.bytesRead;
    counters.bytesToClients += client.bytesWritten;
    if (!connected) instance.destroy();
  });
  instance.once('close', () => {
    if (connected) return;
    counters.outcomes[client.destroyed ? 'gone' : 'connect_failed']++;
    client.resetAndDestroy();
  });
  instance.once('connect', () => {
    connected = true;
    counters.outcomes.relayed++;
    instance.write(hello);
    relay(client, instance, limits.idleTimeoutMs);
  });
}
