import { connect, type Socket } from 'node:net';
import { cutOff } from '../cut-off.ts';

/** Both ends of a connection, as Node spells them; undefined where the connection is gone. */
export interface Endpoints {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
}

/** What a wire tells whoever it belongs to. */
export interface WireOwner {
  /** It is connected: told of one that `connect` made. */
  onOpen(wire: Wire): void;
  onBytes(wire: Wire, bytes: Uint8Array): void;
  /** The peer has ended its sending. */
  onEnd(wire: Wire): void;
  /** All that was written is taken. */
  onDrained(wire: Wire): void;
  /** The end of our sending is on its way. */
  onEnded(wire: Wire): void;
  onBroken(wire: Wire, error: Error): void;
}

/**
 * One TCP connection as the relay needs it, over a socket that must allow half-open connections. It does not read until it is
 * told to. After `close` and `reset`, after `onBroken`, and once both directions have ended, it is over: nothing is told of it
 * any more, and nothing that it is told has an effect.
 */
export class Wire implements Endpoints {
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
      .once('close', () => {
        // Node closes a socket by itself once both directions have ended: its owner has been told of both, and nothing is cut.
        if (socket.readableEnded && socket.writableFinished) this.#isOver = true;
        else broken(socket.errored ?? new Error('closed'));
      })
      // A second one may come, and nobody waits for it.
      .on('error', broken)
      .pause();
  }

  static connect(ipv6: string, port: number, owner: WireOwner): Wire {
    const socket = connect({ host: ipv6, port, family: 6, noDelay: true, allowHalfOpen: true });
    const wire = new Wire(socket, owner);
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

  get bytesWritten(): number {
    return this.#socket.bytesWritten;
  }

  /** Whether more may be written. */
  get writable(): boolean {
    return this.#socket.writable;
  }

  /** Whether `write` asked its sender to pause. */
  get writableNeedDrain(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** What the kernel has not taken yet of that. */
  get writableLength(): number {
    return this.#socket.writableLength;
  }

  /** Begins to read, or goes on. */
  read(): void {
    if (!this.#isOver) this.#socket.resume();
  }

  pause(): void {
    if (!this.#isOver) this.#socket.pause();
  }

  /** @returns false where the sender of the bytes must pause until `onDrained` */
  write(bytes: Uint8Array): boolean {
    return this.#isOver || this.#socket.write(bytes);
  }

  /** Ends our sending, behind all that was written. */
  end(): void {
    if (!this.#isOver) this.#socket.end();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
  }

  /** Closes so that the peer learns that the stream is cut, where that is possible. */
  reset(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    cutOff(this.#socket);
  }
}
