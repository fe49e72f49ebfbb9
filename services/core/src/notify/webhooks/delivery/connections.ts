import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { Connection } from './connection.ts';

/** How often idle connections are looked at. */
const LOOK_MS = 1_000;
/** TLS sessions that are remembered, so that the next connection to a host costs less. */
const SESSIONS_MAX = 100;

/** Where a connection leads. */
export interface Place {
  /** Of the URL: connections to one origin serve for each other. */
  readonly origin: string;
  readonly isTls: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
}

interface ConnectionsOptions {
  readonly lookup: LookupFunction;
  /** Certificate authorities instead of the usual ones (PEM). */
  readonly ca?: string | undefined;
  readonly idleMs: number;
  /** Idle connections to one place, and to all. */
  readonly idlePerPlace: number;
  readonly idleMax: number;
}

/** Connections to places of strangers. Those that wait for a request are bounded: names cost a stranger nothing. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #open = new Set<Connection>();
  /** The places of those that wait, the one that has waited longest first. */
  readonly #idle = new Map<Connection, string>();
  /** The same by their places, the latest last. */
  readonly #byPlace = new Map<string, Connection[]>();
  readonly #sessions = new Map<string, Buffer>();
  #secure: SecureContext | undefined;
  #look: NodeJS.Timeout | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** One that has served before and waits. */
  take(origin: string): Connection | undefined {
    const nowMs = performance.now();
    const kept = this.#byPlace.get(origin) ?? [];
    for (let latest = kept.at(-1); latest; latest = kept.at(-1)) {
      this.#forget(latest);
      if (nowMs < latest.keptUntilMs) return latest;
      latest.close();
    }
    return undefined;
  }

  /** A new one. That it cannot be made is told to who asks over it. */
  open(place: Place): Connection {
    const { origin, isTls, host, port } = place;
    const socket = isTls ? this.#connectTls(place) : connectTcp({ host, port, lookup: this.#options.lookup });
    const connection = new Connection(socket, isTls ? 'secureConnect' : 'connect', (one, keepMs) => {
      if (keepMs > 0) this.#keep(one, origin, keepMs);
      else {
        this.#open.delete(one);
        this.#forget(one);
      }
    });
    this.#open.add(connection);
    return connection;
  }

  /** Ends what is under way, too. */
  close(): void {
    clearInterval(this.#look);
    this.#look = undefined;
    for (const connection of this.#open) connection.close();
  }

  #connectTls({ origin, host, port }: Place): Socket {
    const { lookup, ca } = this.#options;
    this.#secure ??= createSecureContext(ca === undefined ? {} : { ca });
    const session = this.#sessions.get(origin);
    const socket = connectTls({
      ...{ host, port, lookup, secureContext: this.#secure, ALPNProtocols: ['http/1.1'] },
      servername: isIP(host) === 0 ? host : '',
      ...(session ? { session } : {}),
    });
    socket.on('session', (latest) => {
      this.#sessions.delete(origin);
      this.#sessions.set(origin, latest);
      if (this.#sessions.size > SESSIONS_MAX) this.#sessions.delete(this.#sessions.keys().next().value!);
    });
    // It may be the session that the host does not take.
    socket.once('error', () => this.#sessions.delete(origin));
    return socket;
  }

  #keep(connection: Connection, origin: string, keepMs: number): void {
    const { idleMs, idlePerPlace, idleMax } = this.#options;
    const kept = this.#byPlace.get(origin) ?? [];
    if (kept.length >= idlePerPlace) {
      connection.close();
      return;
    }
    connection.keptUntilMs = performance.now() + Math.min(idleMs, keepMs);
    connection.rest();
    kept.push(connection);
    this.#byPlace.set(origin, kept);
    this.#idle.set(connection, origin);
    if (this.#idle.size > idleMax) {
      const oldest: Connection = this.#idle.keys().next().value!;
      this.#forget(oldest);
      oldest.close();
    }
    this.#look ??= setInterval(() => this.#closeOld(), LOOK_MS).unref();
  }

  /** It waits no longer. */
  #forget(connection: Connection): void {
    const origin = this.#idle.get(connection);
    if (origin === undefined) return;
    this.#idle.delete(connection);
    const kept = this.#byPlace.get(origin)!;
    kept.splice(kept.lastIndexOf(connection), 1);
    if (kept.length === 0) this.#byPlace.delete(origin);
  }

  #closeOld(): void {
    const nowMs = performance.now();
    for (const connection of this.#idle.keys()) {
      if (nowMs < connection.keptUntilMs) continue;
      this.#forget(connection);
      connection.close();
    }
    if (this.#idle.size > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }
}
