import assert from 'node:assert/strict';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { until } from '../../testing/suite/world.ts';

const hexOf = (all: readonly Uint8Array[]) => all.map((bytes) => Buffer.from(bytes).toString('hex'));

/** A line each: to show how two lists of long arrays differ, byte for byte, takes gigabytes. */
export const assertSame = (found: readonly Uint8Array[], wanted: readonly Uint8Array[]) =>
  assert.deepEqual(hexOf(found), hexOf(wanted));

/** A UDP socket of a test, with what came to it. */
export class Datagrams implements AsyncDisposable {
  readonly #socket: Socket;
  #isClosed = false;
  readonly heard: { readonly bytes: Uint8Array; readonly from: RemoteInfo }[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('message', (bytes, from) => void this.heard.push({ bytes: new Uint8Array(bytes), from }));
  }

  static async open(host: string, port = 0): Promise<Datagrams> {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.bind(port, host);
    await once(socket, 'listening');
    return new Datagrams(socket);
  }

  get port(): number {
    return (this.#socket.address() as AddressInfo).port;
  }

  /** Answers each that comes, from now on, with what this makes of it. */
  answer(reply: (bytes: Uint8Array) => Uint8Array): void {
    this.#socket.on('message', (bytes, from) =>
      this.send(reply(new Uint8Array(bytes)), from.port, from.address),
    );
  }

  /** Resolves when one of these comes, from now on. */
  heardOne(isIt: (bytes: Uint8Array) => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.on('message', (bytes) => {
        if (isIt(new Uint8Array(bytes))) resolve();
      });
    });
  }

  send(bytes: Uint8Array, port: number, host: string): void {
    this.#socket.send(bytes, port, host);
  }

  /** Resolves when the system has them all, in this order. */
  async sendAll(all: readonly Uint8Array[], port: number, host: string): Promise<void> {
    for (const bytes of all)
      await new Promise<void>((resolve, reject) =>
        this.#socket.send(bytes, port, host, (error) => (error ? reject(error) : resolve())),
      );
  }

  /** The next `count` that come, from the first on that was not taken. */
  async take(count: number): Promise<Uint8Array[]> {
    await until(() => this.heard.length >= count);
    return this.heard.splice(0, count).map(({ bytes }) => bytes);
  }

  /** Waits until something comes here or there; what came here is dropped. */
  async takeOr(there: Datagrams): Promise<void> {
    await until(() => this.heard.length + there.heard.length > 0);
    this.heard.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}
