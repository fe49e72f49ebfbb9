import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { RouteFailure } from '../dataplane/port.ts';
import { failureOf } from '../dataplane/ts/connect.ts';
import { MIN_DATAGRAM_BYTES, MIN_FIRST_ID_BYTES, readPacket } from './packet.ts';

/** One of those that no server ever speaks (RFC 9000 §15): every server answers with the versions that it does. */
const RESERVED_VERSION = 0x1a2a3a4a;
const LONG_FORM_FIXED_BIT = 0xc0;
/** Datagrams get lost. */
const REPEAT_MS = 500;

/** The first packet of a client of a version that does not exist, with two ids to know the answer by. */
function firstPacket(): { bytes: Buffer; destination: Buffer; source: Buffer } {
  const destination = randomBytes(MIN_FIRST_ID_BYTES);
  const source = randomBytes(MIN_FIRST_ID_BYTES);
  const head = Buffer.alloc(5);
  head[0] = LONG_FORM_FIXED_BIT;
  head.writeUInt32BE(RESERVED_VERSION, 1);
  const length = Buffer.of(MIN_FIRST_ID_BYTES);
  const ids = Buffer.concat([head, length, destination, length, source]);
  return { bytes: Buffer.concat([ids, Buffer.alloc(MIN_DATAGRAM_BYTES - ids.length)]), destination, source };
}

/**
 * Asks which versions of QUIC are spoken at an address; begins no connection.
 *
 * @returns why there is no answer; null where there is one
 */
export async function probeQuic(ipv6: string, port: number, timeoutMs: number): Promise<RouteFailure | null> {
  const socket = createSocket('udp6');
  const { bytes, destination, source } = firstPacket();
  const end = AbortSignal.timeout(timeoutMs);
  // Until it is waited for, too.
  socket.on('error', () => {});
  try {
    const connected = once(socket, 'connect', { signal: end });
    socket.connect(port, ipv6);
    await connected;
    socket.send(bytes);
    const repeats = setInterval(() => socket.send(bytes), REPEAT_MS);
    try {
      for (;;) {
        const [answer] = (await once(socket, 'message', { signal: end })) as [Buffer];
        const packet = readPacket(answer);
        if (packet.type !== 'negotiation') continue;
        if (source.equals(packet.destination) && destination.equals(packet.source)) return null;
      }
    } finally {
      clearInterval(repeats);
    }
  } catch (error) {
    return end.aborted ? 'connect_timeout' : failureOf(error as Error);
  } finally {
    socket.close();
  }
}
