/** Both ends of a connection, as Node spells them; undefined where the connection is gone. */
export interface Endpoints {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
}

/**
 * One TCP connection as the relay needs it, whatever carries it. It does not read until it is told to. After `close` and
 * `reset`, and after `onBroken`, it is over: nothing is told of it any more, and nothing that it is told has an effect.
 */
export interface Wire extends Endpoints {
  /** Whether the kernel has not taken yet all that was written. */
  readonly hasUnwritten: boolean;
  /** Begins to read, or goes on. */
  read(): void;
  pause(): void;
  /** @returns false where the sender of the bytes must pause until `onDrained` */
  write(bytes: Uint8Array): boolean;
  /** Ends our sending, behind all that was written. */
  end(): void;
  close(): void;
  /** Closes so that the peer learns that the stream is cut, where that is possible. */
  reset(): void;
}

/** What a wire tells whoever it belongs to. */
export interface WireOwner {
  /** It is connected: told of one that `connect` made. */
  onOpen(wire: Wire): void;
  /** The bytes may be kept until the wire reads on; those of its first read, for ever. */
  onBytes(wire: Wire, bytes: Uint8Array): void;
  /** The peer has ended its sending. */
  onEnd(wire: Wire): void;
  /** All that was written is taken. */
  onDrained(wire: Wire): void;
  /** The end of our sending is on its way. */
  onEnded(wire: Wire): void;
  onBroken(wire: Wire, error: Error): void;
}
