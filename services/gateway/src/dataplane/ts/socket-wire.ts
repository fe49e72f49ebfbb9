import { connect, type Socket } from 'node:net';
import { cutOff } from './cut-off.ts';
import type { Wire, WireOwner } from './wire.ts';

/** A wire over Node's own socket, which must allow half-open connections. */
export class SocketWire implements Wire {
  readonly #socket: Socket;
  #isOver = false;

  constructor(socket: Socket, owner: WireOwner) {
    this.#socket = socket;
    const broken = (error: Error) => {
      if (this.#isOver) return;
      this.#isOver = true;
      owner.onBroken(this, error);
    };
    socket
      .on('data', (bytes: Buffer) => this.#isOver || owner.onBytes(this, bytes))
      .on('drain', () => this.#isOver || owner.onDrained(this))
      .once('end', () => this.#isOver || owner.onEnd(this))
      .once('finish', () => this.#isOver || owner.onEnded(this))
      .once('close', () => broken(socket.errored ?? new Error('closed')))
      // A second one may come, and nobody waits for it.
      .on('error', broken)
      .pause();
  }

  static connect(ipv6: string, port: number, owner: WireOwner): SocketWire {
    const socket = connect({ host: ipv6, port, family: 6, noDelay: true, allowHalfOpen: true });
    const wire = new SocketWire(socket, owner);
    socket.once('connect', () => wire.#isOver || owner.onOpen(wire));
    return wire;
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.#socket.remotePort;
  }

  get localAddress(): string | undefined {
    return this.#socket.localAddress;
  }

  get localPort(): number | undefined {
    return this.#socket.localPort;
  }

  get hasUnwritten(): boolean {
    return this.#socket.writableLength > 0;
  }

  read(): void {
    if (!this.#isOver) this.#socket.resume();
  }

  pause(): void {
    if (!this.#isOver) this.#socket.pause();
  }

  write(bytes: Uint8Array): boolean {
    return this.#isOver || this.#socket.write(bytes);
  }

  end(): void {
    if (!this.#isOver) this.#socket.end();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
  }

  reset(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    cutOff(this.#socket);
  }
}
