/** Frames of HTTP/2 as bytes (RFC 9113 §4.1), for what no client or server of Node's would send. */

export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
export const SETTINGS = 4;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const FRAME_HEADER_BYTES = 9;

export interface FrameToSend {
  readonly type: number;
  readonly flags?: number;
  readonly stream?: number;
  readonly payload?: Uint8Array;
}

export function writeFrame({
  type,
  flags = 0,
  stream = 0,
  payload = new Uint8Array(0),
}: FrameToSend): Buffer {
  const head = Buffer.alloc(FRAME_HEADER_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function writeUint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const INITIAL_WINDOW_SIZE = Buffer.of(0, 4);
const FIRST_WINDOW_BYTES = 65_535;
const MOST_WINDOW_BYTES = 2 ** 31 - 1;
/** Whoever sends this lets the other side send all that it has (RFC 9113 §6.5.2, §6.9). */
export const WIDE_WINDOWS = Buffer.concat([
  writeFrame({
    type: SETTINGS,
    payload: Buffer.concat([INITIAL_WINDOW_SIZE, writeUint32(MOST_WINDOW_BYTES)]),
  }),
  writeFrame({ type: WINDOW_UPDATE, payload: writeUint32(MOST_WINDOW_BYTES - FIRST_WINDOW_BYTES) }),
]);

/** No more streams, and those that there are come to their end (RFC 9113 §6.8). */
export const GOAWAY_IN_ORDER = writeFrame({
  type: GOAWAY,
  payload: Buffer.concat([writeUint32(MOST_WINDOW_BYTES), writeUint32(0)]),
});

/** Fields, none longer than 126 bytes, that no table holds (RFC 7541 §6.2.2). */
export function writeFields(fields: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.of(value.length), Buffer.from(value, 'latin1')]);
  return Buffer.concat(
    Object.entries(fields).flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]),
  );
}

/** The types of the frames that are whole. */
export function typesOf(bytes: Buffer): number[] {
  const types: number[] = [];
  for (let at = 0; at + FRAME_HEADER_BYTES <= bytes.length; ) {
    types.push(bytes[at + 3]!);
    at += FRAME_HEADER_BYTES + bytes.readUIntBE(at, 3);
  }
  return types;
}
