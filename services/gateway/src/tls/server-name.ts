export type ServerNameAnswer =
  | { readonly kind: 'server_name'; readonly serverName: string }
  | { readonly kind: 'no_server_name' }
  | { readonly kind: 'malformed'; readonly reason: string };

/** Of a host name with its trailing dot (RFC 1035 §2.3.4). */
const MAX_NAME_BYTES = 255;
const VERSION_AND_RANDOM_BYTES = 2 + 32;
const EXTENSION_SERVER_NAME = 0;
const NAME_TYPE_HOST = 0;
const FIRST_VISIBLE = 0x21;
const LAST_VISIBLE = 0x7e;

const NO_SERVER_NAME: ServerNameAnswer = { kind: 'no_server_name' };
const malformed = (reason: string): ServerNameAnswer => ({ kind: 'malformed', reason });

interface VectorShape {
  readonly lengthBytes: 1 | 2;
  readonly min: number;
  readonly max: number;
}

const SESSION_ID: VectorShape = { lengthBytes: 1, min: 0, max: 32 };
const CIPHER_SUITES: VectorShape = { lengthBytes: 2, min: 2, max: 0xfffe };
const COMPRESSION_METHODS: VectorShape = { lengthBytes: 1, min: 1, max: 0xff };
const EXTENSIONS: VectorShape = { lengthBytes: 2, min: 0, max: 0xffff };
const EXTENSION_DATA: VectorShape = { lengthBytes: 2, min: 0, max: 0xffff };
const SERVER_NAME_LIST: VectorShape = { lengthBytes: 2, min: 1, max: 0xffff };
const HOST_NAME: VectorShape = { lengthBytes: 2, min: 1, max: 0xffff };

/** The content of the length-prefixed vector at `at`, or undefined where it does not fit. */
function readVector(bytes: Uint8Array, at: number, shape: VectorShape): Uint8Array | undefined {
  const start = at + shape.lengthBytes;
  if (start > bytes.length) return undefined;
  const length = shape.lengthBytes === 1 ? bytes[at]! : (bytes[at]! << 8) | bytes[at + 1]!;
  if (length < shape.min || length > shape.max || start + length > bytes.length) return undefined;
  return bytes.subarray(start, start + length);
}

/**
 * The host name in the body of a ClientHello (RFC 8446 §4.1.2), a message without its header. Strict: the vectors must fill
 * the body exactly, and a server_name extension may come once, with one host name (RFC 6066 §3).
 */
export function findServerName(body: Uint8Array): ServerNameAnswer {
  let at = VERSION_AND_RANDOM_BYTES;
  for (const shape of [SESSION_ID, CIPHER_SUITES, COMPRESSION_METHODS]) {
    const vector = readVector(body, at, shape);
    if (!vector) return malformed('the ClientHello ends early');
    at += shape.lengthBytes + vector.length;
  }
  if (at === body.length) return NO_SERVER_NAME;
  const extensions = readVector(body, at, EXTENSIONS);
  if (!extensions || at + EXTENSIONS.lengthBytes + extensions.length !== body.length)
    return malformed('the extensions do not fill the ClientHello');
  return findInExtensions(extensions);
}

function findInExtensions(extensions: Uint8Array): ServerNameAnswer {
  let found: ServerNameAnswer | undefined;
  for (let at = 0; at < extensions.length; ) {
    const data = readVector(extensions, at + 2, EXTENSION_DATA);
    if (!data) return malformed('an extension does not fit');
    const type = (extensions[at]! << 8) | extensions[at + 1]!;
    if (type === EXTENSION_SERVER_NAME) {
      if (found) return malformed('there are two server_name extensions');
      found = findInNameList(data);
      if (found.kind === 'malformed') return found;
    }
    at += 2 + EXTENSION_DATA.lengthBytes + data.length;
  }
  return found ?? NO_SERVER_NAME;
}

function findInNameList(extension: Uint8Array): ServerNameAnswer {
  const list = readVector(extension, 0, SERVER_NAME_LIST);
  if (!list || SERVER_NAME_LIST.lengthBytes + list.length !== extension.length)
    return malformed('the list of server names does not fill its extension');
  let host: Uint8Array | undefined;
  for (let at = 0; at < list.length; ) {
    const name = readVector(list, at + 1, HOST_NAME);
    if (!name) return malformed('a server name does not fit');
    if (list[at] === NAME_TYPE_HOST) {
      if (host) return malformed('there are two host names');
      host = name;
    }
    at += 1 + HOST_NAME.lengthBytes + name.length;
  }
  return host ? nameOf(host) : NO_SERVER_NAME;
}

function nameOf(host: Uint8Array): ServerNameAnswer {
  if (host.length > MAX_NAME_BYTES) return malformed('the server name is too long');
  for (const byte of host) {
    if (byte < FIRST_VISIBLE || byte > LAST_VISIBLE) return malformed('the server name is not text');
  }
  const text = Buffer.from(host.buffer, host.byteOffset, host.length).toString('latin1').toLowerCase();
  const serverName = text.endsWith('.') ? text.slice(0, -1) : text;
  return serverName === '' ? malformed('the server name is empty') : { kind: 'server_name', serverName };
}
