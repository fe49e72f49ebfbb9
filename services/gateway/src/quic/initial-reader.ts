import type { ServerNameAnswer } from '../tls/server-name.ts';
import { CryptoStream } from './crypto-stream.ts';
import { readFrames } from './frames.ts';
import { type InitialKeys, initialKeys } from './keys.ts';
import { openInitial } from './open.ts';
import {
  type LengthyPacket,
  MIN_DATAGRAM_BYTES,
  MIN_FIRST_ID_BYTES,
  readPacket,
  type Version,
} from './packet.ts';

/**
 * What the datagrams of a client say so far. `unread`: none of them has an Initial packet that authenticates, so nothing has to
 * be remembered of it. Once it is neither that nor `need_more`, no further datagram changes it.
 */
export type InitialAnswer = { readonly kind: 'unread' } | { readonly kind: 'need_more' } | ServerNameAnswer;

/** Packets of one datagram that are looked at; what follows is not for us. */
export const MAX_PACKETS_PER_DATAGRAM = 8;
/** Initial packets that are opened for one hello: Chromium's, when nothing answers, are 12. */
export const MAX_INITIALS = 64;

const malformed = (reason: string): InitialAnswer => ({ kind: 'malformed', reason });

/** Of the connection that is read. */
interface Connection {
  readonly version: Version;
  readonly destination: Uint8Array;
  readonly keys: InitialKeys;
}

/**
 * Reads the server name of a QUIC connection from the datagrams of its client (RFC 9001 §5.2): pure but for what it remembers,
 * bounds-checked, never throws. The first Initial packet that authenticates makes the connection; only packets with its version
 * and destination id count from then on. Nothing else is ever decrypted.
 */
export class InitialReader {
  readonly #stream = new CryptoStream();
  #connection: Connection | undefined;
  #initials = 0;
  #answer: InitialAnswer = { kind: 'unread' };
  readonly #keysOf: typeof initialKeys;

  constructor(keysOf = initialKeys) {
    this.#keysOf = keysOf;
  }

  /** @param datagram whole, as it came from the client */
  push(datagram: Uint8Array): InitialAnswer {
    if (datagram.length < MIN_DATAGRAM_BYTES) return this.#answer;
    let connection = this.#connection;
    let rest = datagram;
    for (let count = 0; count < MAX_PACKETS_PER_DATAGRAM && this.#isOpen; count++) {
      const packet = readPacket(rest);
      if (!('end' in packet)) break;
      // All packets of a datagram are of one connection (RFC 9000 §12.2).
      connection ??= this.#start(packet);
      if (!connection || !isOf(connection, packet)) break;
      if (packet.type === 'initial') this.#read(connection, rest, packet);
      rest = rest.subarray(packet.end);
    }
    return this.#answer;
  }

  get #isOpen(): boolean {
    return this.#answer.kind === 'unread' || this.#answer.kind === 'need_more';
  }

  /** Undefined where the packet cannot be a client's first (RFC 9000 §7.2). */
  #start({ version, destination }: LengthyPacket): Connection | undefined {
    if (destination.length < MIN_FIRST_ID_BYTES) return undefined;
    // A copy: the datagram may lie in memory that is used again.
    const own = Uint8Array.from(destination);
    return { version, destination: own, keys: this.#keysOf(version, own, 'client') };
  }

  #read(connection: Connection, bytes: Uint8Array, packet: LengthyPacket): void {
    const payload = openInitial(connection.keys, bytes, packet);
    if (!payload) return;
    this.#connection = connection;
    this.#initials++;
    const isAllowed = readFrames(payload, (offset, data) => this.#stream.add(offset, data));
    if (!isAllowed) this.#answer = malformed('an Initial packet has what it may not have, or too much');
    else if (this.#initials > MAX_INITIALS) this.#answer = malformed('there are too many Initial packets');
    else this.#answer = this.#stream.read() ?? { kind: 'need_more' };
  }
}

const isOf = ({ version, destination }: Connection, packet: LengthyPacket) =>
  packet.version === version && Buffer.compare(packet.destination, destination) === 0;
