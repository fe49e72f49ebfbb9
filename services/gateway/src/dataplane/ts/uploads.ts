/** Where bytes are sent to, as Node's streams have it. */
interface Sink {
  readonly writable: boolean;
  readonly writableLength: number;
  readonly writableNeedDrain: boolean;
  write(bytes: Uint8Array): unknown;
}

const LOOK_MS = 1_000;
const NOTHING = Buffer.alloc(0);

/**
 * What clients send to instances: bytes of TLS, bodies, and all that comes after a switch of protocols. While an instance takes no more of it, nothing
 * is read from its client, and Node learns of a reset only where it reads or writes. So once a second nothing is written to each such
 * client: that sends nothing, and fails after a reset. An orderly end behind what is not read stays unseen; whoever waits for an answer
 * may end its sending, too.
 */
export class Uploads {
  readonly #clients = new Map<Sink, Sink>();
  #timer: NodeJS.Timeout | undefined;

  /** Until `leave`. @param upstream the request to the instance, or the connection */
  enter(upstream: Sink, client: Sink): void {
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
    this.#clients.set(upstream, client);
  }

  leave(upstream: Sink): void {
    this.#clients.delete(upstream);
    if (this.#clients.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    for (const [upstream, client] of this.#clients) {
      // Where something waits to be written, Node learns of a reset by that.
      const isUnseen = upstream.writableNeedDrain && client.writable && client.writableLength === 0;
      if (isUnseen) client.write(NOTHING);
    }
  }
}
