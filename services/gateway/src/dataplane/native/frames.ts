import type { Failure, Route, RouteChange } from '../port.ts';

/** What is said to the native plane and what it says: a length, a type, a payload, little endian (native/control.c). */

const HEADER_BYTES = 5;
const ADDRESS_BYTES = 16;
const MAX_CHANGE_BYTES = 3 + 255 + ADDRESS_BYTES;
const BATCH_BYTES = 256 * 1024;
const PROXY_HEADER_FLAG = 1;

export function frame(type: string, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  bytes.writeUInt32LE(payload.length + 1, 0);
  bytes.write(type, 4, 'latin1');
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

export function uint32Frame(type: string, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32LE(value);
  return frame(type, payload);
}

const IPV4_TAIL = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/;

/** Writes an IPv6 address, which must be well-formed, as its 16 bytes. */
export function writeIpv6(address: string, into: Uint8Array, at: number): void {
  const [, head, a, b, c, d] = IPV4_TAIL.exec(address) ?? [];
  const hex = (high: string, low: string) => ((Number(high) << 8) | Number(low)).toString(16);
  const text = head === undefined ? address : `${head}${hex(a!, b!)}:${hex(c!, d!)}`;
  const [left = '', right] = text.split('::') as [string?, string?];
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const before = groups(left);
  const after = right === undefined ? [] : groups(right);
  into.fill(0, at, at + ADDRESS_BYTES);
  const put = (group: string, index: number) => {
    const value = Number.parseInt(group, 16);
    into[at + index * 2] = value >> 8;
    into[at + index * 2 + 1] = value & 0xff;
  };
  before.forEach(put);
  after.forEach((group, index) => {
    put(group, ADDRESS_BYTES / 2 - after.length + index);
  });
}

/** In frames of a bounded size, as they are asked for. */
export function* changeFrames(changes: Iterable<Route | RouteChange>): Generator<Buffer> {
  let batch = Buffer.allocUnsafe(4096);
  let length = 0;
  for (const { hostname, ipv6, proxyHeader } of changes) {
    if (length + MAX_CHANGE_BYTES > batch.length) {
      const larger = Buffer.allocUnsafe(Math.min(batch.length * 4, BATCH_BYTES));
      if (larger.length - length < MAX_CHANGE_BYTES) {
        yield frame('P', batch.subarray(0, length));
        length = 0;
      } else {
        batch.copy(larger, 0, 0, length);
        batch = larger;
      }
    }
    batch[length] = ipv6 === null ? 0 : 1;
    batch[length + 1] = proxyHeader ? PROXY_HEADER_FLAG : 0;
    batch[length + 2] = hostname.length;
    length += 3 + batch.write(hostname, length + 3, 'latin1');
    if (ipv6 !== null) {
      writeIpv6(ipv6, batch, length);
      length += ADDRESS_BYTES;
    }
  }
  if (length > 0) yield frame('P', batch.subarray(0, length));
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
const FAILURES: Readonly<Record<number, Failure>> = {
  13: 'unreachable',
  99: 'unreachable',
  101: 'unreachable',
  110: 'connect_timeout',
  111: 'refused',
  113: 'unreachable',
};

export const failureOfNumber = (errno: number): Failure => FAILURES[errno] ?? 'broken';
