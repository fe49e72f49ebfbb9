/** Versions of QUIC whose Initial packets can be read (RFC 9000, RFC 9369). */
export const VERSION_1 = 1;
export const VERSION_2 = 0x6b3343cf;
export type Version = typeof VERSION_1 | typeof VERSION_2;

/** The smallest datagram with an Initial packet of a client (RFC 9000 §14.1). */
export const MIN_DATAGRAM_BYTES = 1200;
/** Of a client's first destination id (RFC 9000 §7.2), and of any id in these versions (§17.2). */
export const MIN_FIRST_ID_BYTES = 8;
export const MAX_ID_BYTES = 20;

const LONG_FORM = 0x80;
const TYPE_SHIFT = 4;
const TYPE_MASK = 3;
const VERSION_BYTES = 4;
const NEGOTIATION = 0;

type TypeWithLength = 'initial' | 'zero_rtt' | 'handshake';
/** By the two bits of the first byte. */
const TYPES: Readonly<Record<Version, readonly (TypeWithLength | 'retry')[]>> = {
  [VERSION_1]: ['initial', 'zero_rtt', 'handshake', 'retry'],
  [VERSION_2]: ['retry', 'initial', 'zero_rtt', 'handshake'],
};

/** What every version has (RFC 8999 §5.1). */
interface Ids {
  readonly destination: Uint8Array;
  readonly source: Uint8Array;
}

export interface LengthyPacket extends Ids {
  readonly type: TypeWithLength;
  readonly version: Version;
  /** Where the packet number begins, and where the packet ends. */
  readonly numberAt: number;
  readonly end: number;
}

export type Packet =
  | LengthyPacket
  | ({ readonly type: 'retry'; readonly version: Version } & Ids)
  | ({ readonly type: 'negotiation' } & Ids)
  | ({ readonly type: 'unknown_version'; readonly version: number } & Ids)
  | { readonly type: 'short' }
  | { readonly type: 'malformed' };

const MALFORMED: Packet = { type: 'malformed' };

const isKnown = (version: number): version is Version => version === VERSION_1 || version === VERSION_2;

/** A number and where it ends; undefined where it does not fit (RFC 9000 §16). Those of 2^53 and more are not exact. */
export function readVarint(bytes: Uint8Array, at: number): { value: number; end: number } | undefined {
  const first = bytes[at];
  if (first === undefined) return undefined;
  const end = at + (1 << (first >> 6));
  if (end > bytes.length) return undefined;
  let value = first & 0x3f;
  for (let index = at + 1; index < end; index++) value = value * 256 + bytes[index]!;
  return { value, end };
}

function readId(bytes: Uint8Array, at: number): { id: Uint8Array; end: number } | undefined {
  const length = bytes[at];
  if (length === undefined || at + 1 + length > bytes.length) return undefined;
  return { id: bytes.subarray(at + 1, at + 1 + length), end: at + 1 + length };
}

/** The packet at the beginning of these bytes of a datagram, as far as nothing protects it. Pure, never throws. */
export function readPacket(bytes: Uint8Array): Packet {
  const first = bytes[0];
  if (first === undefined) return MALFORMED;
  if ((first & LONG_FORM) === 0) return { type: 'short' };
  if (bytes.length < 1 + VERSION_BYTES) return MALFORMED;
  const version = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
  const destination = readId(bytes, 1 + VERSION_BYTES);
  const source = destination && readId(bytes, destination.end);
  if (!source) return MALFORMED;
  const ids = { destination: destination.id, source: source.id };
  if (version === NEGOTIATION) return { type: 'negotiation', ...ids };
  if (!isKnown(version)) return { type: 'unknown_version', version, ...ids };
  if (ids.destination.length > MAX_ID_BYTES || ids.source.length > MAX_ID_BYTES) return MALFORMED;
  const type = TYPES[version][(first >> TYPE_SHIFT) & TYPE_MASK]!;
  if (type === 'retry') return { type, version, ...ids };
  const rest = readLength(bytes, source.end, type === 'initial');
  return rest ? { type, version, ...ids, ...rest } : MALFORMED;
}

/** Behind the ids: a token, in Initial packets, and the length of number and payload (RFC 9000 §17.2.2). */
function readLength(bytes: Uint8Array, at: number, hasToken: boolean) {
  const token = hasToken ? readVarint(bytes, at) : { value: 0, end: at };
  if (!token || token.value > bytes.length - token.end) return undefined;
  const length = readVarint(bytes, token.end + token.value);
  if (!length || length.value > bytes.length - length.end) return undefined;
  return { numberAt: length.end, end: length.end + length.value };
}
