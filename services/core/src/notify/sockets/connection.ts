import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** What one reader may leave unread of what came since it is here; with more it is let go. */
export const BACKLOG_BYTES = 4 * 1024 * 1024;
/** How long a reader whose connection is closed has to read the rest, and to answer. */
const LINGER_MS = 5_000;
/** Frames that a reader may send between two pings. It has nothing to say. */
const HEARD_MAX = 100;
/** And bytes, whole frames or not; as many again are read of one whose connection is closed. */
const HEARD_BYTES_MAX = 64 * 1024;

const PING_BYTES = 8;

const CLOSE_TALKING = 1008;
const CLOSE_LATER = 1013;

/** Why a reader is let go, as its close frame says. */
export const SLOW =
  'you read too slowly: connect again, with startDate or history for what you missed, or with narrower filters';
const TALKING = 'nothing that you send is read here';
export const YIELDED = 'a client that has no WebSocket takes the place of one of yours: connect again later';

/** One WebSocket of which clients only read. */
export class Connection {
  readonly #client: WebSocket;
  readonly #socket: Socket;
  #heard = 0;
  #heardBytes = 0;
  /** What answers the last ping. undefined: it is answered. Who answers has read all that was sent before it. */
  #asked: Buffer | undefined;

  /** @param socket under the client: what is written are frames, which many connections share */
  constructor(client: WebSocket, socket: Socket) {
    this.#client = client;
    this.#socket = socket;
    client.on('message', () => this.#hear());
    client.on('ping', (data) => {
      if (this.#hear()) client.pong(data);
    });
    client.on('pong', (data) => {
      if (this.#asked?.equals(data)) this.#asked = undefined;
      else this.#hear();
    });
    // It is closed because of it, and what still comes would be read for as long as it does.
    client.on('error', () => this.#linger(LINGER_MS));
    socket.on('data', ({ length }: Buffer) => this.#read(length));
  }

  /** Bytes that were written and did not go out yet. */
  get unread(): number {
    return this.#socket.destroyed ? 0 : this.#socket.writableLength;
  }

  get isOpen(): boolean {
    return this.#client.readyState === this.#client.OPEN;
  }

  onClose(listener: () => void): void {
    this.#client.once('close', listener);
  }

  /** @param done is called when it went out */
  write(frames: Buffer, done?: () => void): void {
    if (this.isOpen) this.#socket.write(frames, done);
  }

  /** Asks whether anybody is there. Who did not answer the last time is gone. */
  ping(): void {
    this.#heard = 0;
    if (this.isOpen) this.#heardBytes = 0;
    if (this.#asked) this.#client.terminate();
    else if (this.isOpen) {
      this.#asked = randomBytes(PING_BYTES);
      this.#client.ping(this.#asked);
    }
  }

  letGo(): void {
    this.close(CLOSE_LATER, SLOW);
  }

  /** Its place is another client's. */
  yield(): void {
    this.close(CLOSE_LATER, YIELDED);
  }

  close(code: number, reason: string, lingerMs = LINGER_MS): void {
    if (!this.isOpen) return;
    this.#client.close(code, reason);
    this.#linger(lingerMs);
  }

  /** Whoever is told that it is over has so long, and so many bytes, to hear it. */
  #linger(ms: number): void {
    this.#heardBytes = 0;
    const timer = setTimeout(() => this.#client.terminate(), ms);
    this.#client.once('close', () => clearTimeout(timer));
  }

  #read(bytes: number): void {
    this.#heardBytes += bytes;
    if (this.#heardBytes <= HEARD_BYTES_MAX) return;
    if (this.isOpen) this.close(CLOSE_TALKING, TALKING);
    else this.#client.terminate();
  }

  /** @returns whether the client may be answered */
  #hear(): boolean {
    this.#heard++;
    if (this.#heard > HEARD_MAX) this.close(CLOSE_TALKING, TALKING);
    return this.isOpen && this.unread <= BACKLOG_BYTES;
  }
}
