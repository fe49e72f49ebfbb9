/** An ssh key that is made in the browser: its public line for a machine, its private file for its owner (PROTOCOL.key of OpenSSH). */
export interface SshKey {
  /** `ssh-ed25519 AAAA… comment` */
  readonly line: string;
  /** What `ssh -i` takes. Not encrypted. */
  readonly file: string;
}

const KIND = 'ssh-ed25519';
const BLOCK_BYTES = 8;
const LINE_CHARS = 70;

const encoder = new TextEncoder();

const join = (...parts: readonly Uint8Array[]) => {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
};

function number(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

/** Bytes with their length before them (RFC 4251, section 5). */
function field(value: Uint8Array | string): Uint8Array {
  const bytes = typeof value === 'string' ? encoder.encode(value) : value;
  return join(number(bytes.length), bytes);
}

const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes));

const fromBase64url = (text: string) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));

function padded(bytes: Uint8Array): Uint8Array {
  const missing = (BLOCK_BYTES - (bytes.length % BLOCK_BYTES)) % BLOCK_BYTES;
  return join(
    bytes,
    Uint8Array.from({ length: missing }, (_, at) => at + 1),
  );
}

/** @param seed 32 bytes @param comment printable, told behind the public key */
function encode(publicKey: Uint8Array, seed: Uint8Array, comment: string): SshKey {
  const open = join(field(KIND), field(publicKey));
  const check = crypto.getRandomValues(new Uint8Array(4));
  const secret = padded(
    join(check, check, field(KIND), field(publicKey), field(join(seed, publicKey)), field(comment)),
  );
  const head = join(encoder.encode('openssh-key-v1\0'), field('none'), field('none'), field(''), number(1));
  const lines = base64(join(head, field(open), field(secret))).match(new RegExp(`.{1,${LINE_CHARS}}`, 'g'))!;
  return {
    line: `${KIND} ${base64(open)} ${comment}`,
    file: ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join(
      '\n',
    ),
  };
}

/** Throws where the browser has no Ed25519. */
export async function makeSshKey(comment: string): Promise<SshKey> {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify']);
  if (!('privateKey' in pair)) throw new Error('the browser made no pair of keys');
  const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
  const { d = '' } = await crypto.subtle.exportKey('jwk', pair.privateKey);
  return encode(publicKey, fromBase64url(d), comment);
}
