import { createServer, type Server, type Socket } from 'node:net';
import { ALERT, alertRecord } from '../../tls/alert.ts';
import { ClientHelloReader, type HelloAnswer } from '../../tls/client-hello.ts';
import type { DataPlaneLimits, TlsOutcome } from '../port.ts';
import { connectInstance, failureOf } from './connect.ts';
import { clientKey } from './counts.ts';
import { cutOff } from './cut-off.ts';
import { linger } from './linger.ts';
import { proxyHeader } from './proxy-header.ts';
import { relay } from './relay.ts';
import type { RouteTable } from './routes.ts';
import type { TlsSide, Trace } from './tls-side.ts';

export interface TlsListenerOptions {
  readonly routes: RouteTable;
  readonly upstreamPort: number;
  readonly limits: DataPlaneLimits;
  readonly counters: TlsCounters;
  readonly side: TlsSide;
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
  readonly giveUp: (outcome: TlsOutcome) => void;
}

/** A server that reads the server name of each connection and passes the bytes, untouched, to the instance of that name. */
export function createTlsListener(options: TlsListenerOptions): TlsListener {
  const { limits, side, counters } = options;
  const connections = new Set<Socket>();
  const undecided = new Set<Undecided>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // Its close follows, and that is what everything here acts on.
    socket.on('error', () => {});
    const client = clientKey(socket.remoteAddress);
    if (!side.perClient.enter(client)) {
      counters.outcomes.client_limit++;
      socket.destroy();
      return;
    }
    connections.add(socket);
    socket.once('close', () => {
      connections.delete(socket);
      side.perClient.leave(client);
    });
    new Connection(socket, options, side.trace(socket)).awaitHello(undecided);
    if (undecided.size > limits.maxUndecided) {
      const [oldest] = undecided;
      oldest?.giveUp('crowded_out');
    }
  });
  server.maxConnections = limits.maxConnections;
  server.on('drop', () => counters.outcomes.too_many++);
  return { server, connections };
}

/** One client, from its first byte until it is joined to an instance or refused. */
class Connection {
  readonly #socket: Socket;
  readonly #options: TlsListenerOptions;
  readonly #trace: Trace | undefined;

  constructor(socket: Socket, options: TlsListenerOptions, trace: Trace | undefined) {
    this.#socket = socket;
    this.#options = options;
    this.#trace = trace;
  }

  awaitHello(undecided: Set<Undecided>): void {
    const socket = this.#socket;
    const reader = new ClientHelloReader();
    const settle = () => {
      clearTimeout(deadline);
      undecided.delete(entry);
      socket.off('data', onData).off('close', onGone).off('end', onGone);
    };
    const giveUp = (outcome: TlsOutcome) => {
      settle();
      this.#count(outcome);
      socket.destroy();
    };
    const onGone = () => giveUp('gone');
    const onData = (chunk: Buffer) => {
      const answer = reader.push(chunk);
      if (answer.kind === 'need_more') return;
      socket.pause();
      settle();
      this.#act(answer, reader.bytes);
    };
    const entry: Undecided = { giveUp };
    // From the first moment to the complete hello, however many bytes keep coming.
    const deadline = setTimeout(() => giveUp('hello_timeout'), this.#options.limits.helloTimeoutMs);
    undecided.add(entry);
    socket.on('data', onData).on('close', onGone).on('end', onGone);
  }

  #count(outcome: TlsOutcome): void {
    this.#options.counters.outcomes[outcome]++;
    if (this.#trace) this.#trace.outcome = outcome;
  }

  #act(answer: DecidedAnswer, hello: Uint8Array): void {
    switch (answer.kind) {
      case 'server_name':
        this.#route(answer.serverName, hello);
        break;
      case 'no_server_name':
        this.#refuse('no_server_name', alertRecord(ALERT.unrecognizedName));
        break;
      case 'malformed':
        this.#refuse('malformed', alertRecord(ALERT.decodeError));
        break;
      case 'not_tls':
        this.#refuse('not_tls');
        break;
    }
  }

  #refuse(outcome: TlsOutcome, alert?: Uint8Array): void {
    const socket = this.#socket;
    this.#count(outcome);
    if (alert) socket.end(alert);
    else socket.end();
    linger(socket, () => socket.destroy());
  }

  #route(hostname: string, hello: Uint8Array): void {
    const { routes, side } = this.#options;
    const ipv6 = routes.get(hostname);
    if (ipv6 === undefined) {
      this.#refuse('unknown_name', alertRecord(ALERT.unrecognizedName));
    } else if (!side.perInstance.enter(hostname)) {
      this.#refuse('instance_limit', alertRecord(ALERT.internalError));
    } else {
      this.#socket.once('close', () => side.perInstance.leave(hostname));
      if (this.#trace) this.#trace.hostname = hostname;
      this.#relayTo(ipv6, hostname, hello);
    }
  }

  #relayTo(ipv6: string, hostname: string, hello: Uint8Array): void {
    const { upstreamPort, limits, counters, routes } = this.#options;
    const client = this.#socket;
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
      if (!client.destroyed) routes.noteAttempt(hostname, failureOf(instance.errored ?? new Error('closed')));
      this.#count(client.destroyed ? 'gone' : 'connect_failed');
      cutOff(client);
    });
    instance.once('connect', () => {
      connected = true;
      this.#count('relayed');
      routes.noteAttempt(hostname);
      if (routes.wantsProxyHeader(hostname)) instance.write(proxyHeader(client));
      instance.write(hello);
      relay(client, instance, limits.idleTimeoutMs);
    });
  }
}
