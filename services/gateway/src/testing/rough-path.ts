import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { randomFrom } from '../tls/testing/fuzz.ts';

const LOOPBACK = '127.0.0.1';
/** As many as a fast sender has under way: what is lost is lost by this path alone. */
const BUFFER_BYTES = 4 * 1024 * 1024;
/** Datagrams that overtake one that is held back. */
const OVERTAKEN_BY = 3;

interface Held {
  readonly send: () => void;
  left: number;
}

/** A path for datagrams that loses, repeats and reorders one in so many each, both ways, the same with the same seed. */
export class RoughPath implements AsyncDisposable {
  readonly counts = { passed: 0, lost: 0, repeated: 0, reordered: 0 };
  readonly #front = createSocket('udp4');
  /** Towards the other end, one for each client. */
  readonly #backs = new Map<number, Socket>();
  readonly #held: Held[] = [];
  readonly #random;
  readonly #oneIn: number;
  readonly #to: number;

  private constructor(to: number, oneIn: number, seed: number) {
    this.#to = to;
    this.#oneIn = oneIn;
    this.#random = randomFrom(seed);
  }

  /** @param to port on loopback that everything goes to; @param oneIn at least 3 */
  static async open(to: number, oneIn: number, seed: number): Promise<RoughPath> {
    const path = new RoughPath(to, oneIn, seed);
    path.#front.on('message', (bytes, from) => path.#forward(bytes, from.port));
    path.#front.bind(0, LOOPBACK);
    await once(path.#front, 'listening');
    path.#front.setRecvBufferSize(BUFFER_BYTES);
    return path;
  }

  get port(): number {
    return (this.#front.address() as AddressInfo).port;
  }

  #forward(bytes: Buffer, client: number): void {
    const back = this.#backs.get(client) ?? this.#openBack(client);
    this.#pass(() => back.send(bytes, this.#to, LOOPBACK));
  }

  #openBack(client: number): Socket {
    const back = createSocket('udp4');
    back.on('message', (bytes) => this.#pass(() => this.#front.send(bytes, client, LOOPBACK)));
    back.once('listening', () => back.setRecvBufferSize(BUFFER_BYTES)).bind(0, LOOPBACK);
    this.#backs.set(client, back);
    return back;
  }

  #pass(send: () => void): void {
    const [lost, reordered, repeated] = [0, 1, 2];
    const fate = this.#random(this.#oneIn);
    if (fate === lost) {
      this.counts.lost++;
    } else if (fate === reordered) {
      this.counts.reordered++;
      this.#held.push({ send, left: OVERTAKEN_BY });
      return;
    } else {
      this.counts.passed++;
      send();
      if (fate === repeated) {
        this.counts.repeated++;
        send();
      }
    }
    for (const held of this.#held) held.left--;
    while (this.#held[0] && this.#held[0].left <= 0) this.#held.shift()!.send();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      [this.#front, ...this.#backs.values()].map(async (socket) => {
        socket.close();
        await once(socket, 'close');
      }),
    );
  }
}
