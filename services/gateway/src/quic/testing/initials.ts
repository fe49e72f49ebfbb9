/** Datagrams of QUIC clients for tests, made byte by byte. */
import assert from 'node:assert/strict';
import { createCipheriv } from 'node:crypto';
import { joined } from '../../tls/testing/hello.ts';
import { FRAME } from '../frames.ts';
import { initialKeys } from '../keys.ts';
import { headerMask, nonceOf, TAG_BYTES } from '../open.ts';
import { MIN_DATAGRAM_BYTES, readPacket, VERSION_1, VERSION_2, type Version } from '../packet.ts';

const UINT32_BYTES = 4;

export function varint(value: number): Uint8Array {
  if (value < 0x40) return Uint8Array.of(value);
  if (value < 0x4000) return Uint8Array.of(0x40 | (value >> 8), value & 0xff);
  return Uint8Array.of(0x80 | (value >>> 24), (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff);
}

/** A number in eight bytes, whatever its size. */
export const longVarint = (value: bigint): Uint8Array => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE((3n << 62n) | value);
  return bytes;
};

export const uint32 = (value: number): Uint8Array => {
  const bytes = Buffer.alloc(UINT32_BYTES);
  bytes.writeUInt32BE(value);
  return bytes;
};

export const cryptoFrame = (offset: number, data: Uint8Array) =>
  joined(Uint8Array.of(FRAME.crypto), varint(offset), varint(data.length), data);

export interface InitialShape {
  readonly version?: Version;
  readonly destination?: Uint8Array;
  /** Of the id that the keys come from, where that is not the destination. */
  readonly keysOf?: Uint8Array;
  readonly source?: Uint8Array;
  readonly token?: Uint8Array;
  readonly number?: number;
  readonly numberBytes?: 1 | 2 | 3 | 4;
  readonly payload: Uint8Array;
  readonly side?: 'client' | 'server';
}

export const DESTINATION = Uint8Array.of(0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08);
const FIRST_BYTE = { [VERSION_1]: 0xc0, [VERSION_2]: 0xd0 };

/** The first byte, version and ids, which every long packet begins with. */
export const longHead = (first: number, version: number, destination: Uint8Array, source: Uint8Array) =>
  joined(
    Uint8Array.of(first),
    uint32(version),
    Uint8Array.of(destination.length),
    destination,
    Uint8Array.of(source.length),
    source,
  );

/** A protected Initial packet (RFC 9001 §5). */
export function sealInitial(shape: InitialShape): Uint8Array {
  const { version = VERSION_1, destination = DESTINATION, source = new Uint8Array(0) } = shape;
  const { token = new Uint8Array(0), number = 0, numberBytes = 4, payload } = shape;
  const keys = initialKeys(version, shape.keysOf ?? destination, shape.side ?? 'client');
  const first = FIRST_BYTE[version] | (numberBytes - 1);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(0x4000 | (numberBytes + payload.length + TAG_BYTES));
  const header = joined(
    longHead(first, version, destination, source),
    varint(token.length),
    token,
    length,
    uint32(number).subarray(UINT32_BYTES - numberBytes),
  );
  const cipher = createCipheriv('aes-128-gcm', keys.key, nonceOf(keys, number));
  cipher.setAAD(header);
  const sealed = joined(cipher.update(payload), cipher.final(), cipher.getAuthTag());
  const packet = joined(header, sealed);
  const numberAt = header.length - numberBytes;
  const mask = headerMask(keys, packet.subarray(numberAt + UINT32_BYTES, numberAt + UINT32_BYTES + 16));
  packet[0] = packet[0]! ^ (mask[0]! & 0x0f);
  for (let index = 0; index < numberBytes; index++)
    packet[numberAt + index] = packet[numberAt + index]! ^ mask[1 + index]!;
  return packet;
}

const HEADROOM = 80;

/** A datagram of the least size with one Initial packet, which PADDING frames fill; more where the frames are more. */
export function initialDatagram(frames: readonly Uint8Array[], shape: Omit<InitialShape, 'payload'> = {}) {
  const content = joined(...frames);
  const room = MIN_DATAGRAM_BYTES - HEADROOM - (shape.token?.length ?? 0);
  const payload = joined(content, new Uint8Array(Math.max(4, room - content.length)));
  return padded(sealInitial({ ...shape, payload }));
}

/** With zeros behind it: no packet begins with one. */
export const padded = (packet: Uint8Array) =>
  joined(packet, new Uint8Array(Math.max(0, MIN_DATAGRAM_BYTES - packet.length)));

/** How a server answers a packet of a version that it does not speak (RFC 8999 §6). */
export function listVersions(asked: Uint8Array): Uint8Array {
  const packet = readPacket(asked);
  assert.ok('source' in packet);
  return joined(longHead(0x80, 0, packet.source, packet.destination), Uint8Array.of(0, 0, 0, 1));
}
