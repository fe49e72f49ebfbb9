import type { Upgrade } from '@skerry/kit';
import { WebSocketServer } from 'ws';
import { Connection } from './connection.ts';

/** What all readers together may leave unread; beyond it those go who left the most. */
const BACKLOG_BYTES_ALL = 256 * 1024 * 1024;
/** Each connection is asked so often whether anybody is there. */
const PING_MS = 30_000;
const LOOK_MS = 1_000;
/** Of what a client sends. */
const FRAME_BYTES_MAX = 4 * 1024;
const CLOSE_STOPPING = 1001;
/** How long clients have to hear that the node stops. */
const STOP_MS = 1_000;

/** Somebody for whom bytes wait. */
interface Reading {
  readonly unread: number;
  letGo(): void;
}

/** All WebSockets of a node: they are opened, pinged and ended here, and what waits for their clients is bounded. */
export class Connections {
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES_MAX,
    autoPong: false,
  });
  /** With the time of their next ping, the first due first. */
  readonly #open = new Map<Connection, number>();
  readonly #behind = new Set<Reading>();
  readonly #backlogMax: number;

  constructor(signal: AbortSignal, backlogMax = BACKLOG_BYTES_ALL) {
    this.#backlogMax = backlogMax;
    const timer = setInterval(() => this.#look(), LOOK_MS).unref();
    const stop = () => {
      clearInterval(timer);
      for (const one of this.#open.keys()) one.close(CLOSE_STOPPING, 'the node stops', STOP_MS);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  }

  /** Shakes hands. undefined: the client is gone, or was refused. */
  open({ request, socket, head }: Upgrade): Connection | undefined {
    let connection: Connection | undefined;
    this.#server.handleUpgrade(request, socket, head, (client) => {
      connection = new Connection(client, socket);
    });
    const opened = connection;
    if (!opened) return undefined;
    this.#open.set(opened, performance.now() + PING_MS);
    opened.onClose(() => this.#open.delete(opened));
    return opened;
  }

  /** Bytes wait for it: they count until none do. */
  noteBehind(reader: Reading): void {
    this.#behind.add(reader);
  }

  /** Lets those go who left the most unread, until what is left is within the bound. */
  relieve(): void {
    let sum = 0;
    for (const one of this.#behind) {
      const { unread } = one;
      if (unread === 0) this.#behind.delete(one);
      else sum += unread;
    }
    if (sum <= this.#backlogMax) return;
    for (const one of [...this.#behind].sort((a, b) => b.unread - a.unread)) {
      sum -= one.unread;
      this.#behind.delete(one);
      one.letGo();
      if (sum <= this.#backlogMax) return;
    }
  }

  #look(): void {
    const now = performance.now();
    for (const [connection, due] of this.#open) {
      if (due > now) break;
      this.#open.delete(connection);
      this.#open.set(connection, now + PING_MS);
      connection.ping();
    }
    this.relieve();
  }
}
