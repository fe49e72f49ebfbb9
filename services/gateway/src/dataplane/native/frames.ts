import type { Route, RouteChange, RouteFailure } from '../port.ts';
import { COMMANDS, type Command, ROUTE_FLAGS } from './layout.ts';

/** What is said to the native plane and what it says: a length, a type, a payload, little endian (native/control.c). */

const HEADER_BYTES = 5;
const ADDRESS_BYTES = 16;
const MAX_CHANGE_BYTES = 3 + 255 + ADDRESS_BYTES;
const BATCH_BYTES = 256 * 1024;

export function frame(type: Command, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  bytes.writeUInt32LE(payload.length + 1, 0);
  bytes.write(type, 4, 'latin1');
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

export function uint32Frame(type: Command, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32LE(value);
  return frame(type, payload);
}

const COLON = 0x3a;
const DOT = 0x2e;

/** The value of a hexadecimal digit, upper or lower case. */
const hexDigit = (code: number) => (code <= 0x39 ? code - 0x30 : (code | 0x20) - 0x57);

/** Writes an IPv6 address, which must be well-formed, as its 16 bytes. One pass: a whole table is many of them. */
export function writeIpv6(address: string, into: Uint8Array, start: number): void {
  let at = start;
  let group = 0;
  let gap = -1;
  /** Decimal value of an IPv4 tail, beside the hexadecimal one: which it is shows at the dot. */
  let decimal = 0;
  let isIpv4 = false;
  let digits = 0;
  const end = () => {
    if (digits === 0) return;
    if (isIpv4) into[at++] = decimal;
    else {
      into[at++] = group >> 8;
      into[at++] = group & 0xff;
    }
    group = decimal = digits = 0;
  };
  for (let index = 0; index < address.length; index++) {
    const code = address.charCodeAt(index);
    if (code === COLON) {
      end();
      if (address.charCodeAt(index + 1) === COLON) gap = at;
    } else if (code === DOT) {
      isIpv4 = true;
      end();
    } else {
      group = (group << 4) | hexDigit(code);
      decimal = decimal * 10 + hexDigit(code);
      digits++;
    }
  }
  end();
  const stop = start + ADDRESS_BYTES;
  if (gap < 0) return;
  const moved = at - gap;
  into.copyWithin(stop - moved, gap, at);
  into.fill(0, gap, stop - moved);
}

/** In frames of a bounded size, as they are asked for. */
export function* changeFrames(changes: Iterable<Route | RouteChange>): Generator<Buffer> {
  let batch = Buffer.allocUnsafe(4096);
  let length = 0;
  for (const { hostname, ipv6, proxyHeader } of changes) {
    if (length + MAX_CHANGE_BYTES > batch.length) {
      const larger = Buffer.allocUnsafe(Math.min(batch.length * 4, BATCH_BYTES));
      if (larger.length - length < MAX_CHANGE_BYTES) {
        yield frame(COMMANDS.change, batch.subarray(0, length));
        length = 0;
      } else {
        batch.copy(larger, 0, 0, length);
        batch = larger;
      }
    }
    batch[length] = ipv6 === null ? 0 : 1;
    batch[length + 1] = proxyHeader ? ROUTE_FLAGS.proxyHeader : 0;
    batch[length + 2] = hostname.length;
    length += 3 + batch.write(hostname, length + 3, 'latin1');
    if (ipv6 !== null) {
      writeIpv6(ipv6, batch, length);
      length += ADDRESS_BYTES;
    }
  }
  if (length > 0) yield frame(COMMANDS.change, batch.subarray(0, length));
}

export interface Frame {
  readonly type: string;
  readonly payload: Buffer;
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  #kept: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Frame[] {
    let bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    const frames: Frame[] = [];
    while (bytes.length >= HEADER_BYTES) {
      const end = 4 + bytes.readUInt32LE(0);
      if (bytes.length < end) break;
      frames.push({ type: bytes.toString('latin1', 4, 5), payload: bytes.subarray(HEADER_BYTES, end) });
      bytes = bytes.subarray(end);
    }
    this.#kept = bytes;
    return frames;
  }
}

/** Linux's numbers for why a connection did not come about. */
const FAILURES: Readonly<Record<number, RouteFailure>> = {
  13: 'unreachable',
  101: 'unreachable',
  110: 'connect_timeout',
  111: 'refused',
  113: 'unreachable',
};

export const failureOfNumber = (errno: number): RouteFailure => FAILURES[errno] ?? 'broken';
