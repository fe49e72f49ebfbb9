/** ClientHellos for tests, built byte by byte. */

export interface HelloShape {
  /** Bytes of the host name as they stand; none leaves the extension out. */
  readonly serverName?: string | undefined;
  readonly sessionIdBytes?: number;
  readonly extensions?: readonly Uint8Array[];
  /** Adds a key share of this size, as post-quantum groups do. */
  readonly keyShareBytes?: number;
}

const uint16 = (value: number) => Uint8Array.of((value >> 8) & 0xff, value & 0xff);
const text = (value: string) => Uint8Array.from(value, (letter) => letter.charCodeAt(0));
const concat = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
const vector16 = (...parts: Uint8Array[]) => {
  const content = concat(...parts);
  return concat(uint16(content.length), content);
};

/** RFC 8701: values that a server must not stumble over. */
const GREASE = 0x3a3a;
const EXTENSION_KEY_SHARE = 51;

export const extension = (type: number, data: Uint8Array) => concat(uint16(type), vector16(data));
export const serverNameExtension = (...names: string[]) =>
  extension(0, vector16(...names.map((name) => concat(Uint8Array.of(0), vector16(text(name))))));

/** The handshake message, with its header, without records. */
export function helloMessage(shape: HelloShape = {}): Uint8Array {
  const extensions = [
    extension(GREASE, new Uint8Array(0)),
    ...(shape.serverName === undefined ? [] : [serverNameExtension(shape.serverName)]),
    extension(
      EXTENSION_KEY_SHARE,
      vector16(uint16(GREASE), vector16(new Uint8Array(shape.keyShareBytes ?? 32))),
    ),
    ...(shape.extensions ?? []),
  ];
  const body = concat(
    Uint8Array.of(3, 3),
    new Uint8Array(32).fill(7),
    Uint8Array.of(shape.sessionIdBytes ?? 32),
    new Uint8Array(shape.sessionIdBytes ?? 32),
    vector16(uint16(GREASE), uint16(0x1301), uint16(0x1302)),
    Uint8Array.of(1, 0),
    vector16(...extensions),
  );
  return concat(Uint8Array.of(1, 0), uint16(body.length), body);
}

export const record = (payload: Uint8Array, type = 22) =>
  concat(Uint8Array.of(type, 3, 1), uint16(payload.length), payload);

/** The message cut into records of at most `size` bytes. */
export function inRecords(message: Uint8Array, size: number): Uint8Array {
  const records: Uint8Array[] = [];
  for (let at = 0; at < message.length; at += size) records.push(record(message.subarray(at, at + size)));
  return concat(...records);
}

/** The whole hello on the wire, in one record where it fits. */
export const helloWire = (shape: HelloShape = {}) => inRecords(helloMessage(shape), 2 ** 14);

export const joined = concat;
