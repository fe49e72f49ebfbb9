import { AppError } from './errors.ts';
import { parseEvmAddress } from './evm/address.ts';
import { recoverPersonalSigner } from './evm/personal-sign.ts';
import { sha256Hex } from './hash.ts';
import { hexToBytes } from './hex.ts';
import { HASH64_PATTERN } from './network-form/item-hash.ts';
import { createParser } from './schema.ts';
import { type Static, Type } from './type.ts';

/**
 * How an owner asks a compute node for something: a key of the moment (P-256) that the owner's wallet signed once, and
 * each request signed with that key. The form is the one of deployed nodes and their clients.
 */
export const OWNER_HEADERS = { publicKey: 'x-signedpubkey', operation: 'x-signedoperation' } as const;

/** How far a request's time may be from the node's, both ways. */
export const OPERATION_WINDOW_MS = 120_000;
const HEADER_CHARS_MAX = 8_192;

// What is not defined is refused: a member that nobody reads would be another spelling of the same operation.
const CLOSED = { additionalProperties: false };
const Signed = Type.Object({ payload: Type.String(), signature: Type.String() }, CLOSED);
/** Its own standard lets a key say more (RFC 7517, section 4). */
const Jwk = Type.Object({
  kty: Type.Literal('EC'),
  crv: Type.Literal('P-256'),
  x: Type.String({ maxLength: 64 }),
  y: Type.String({ maxLength: 64 }),
});
const KeyPayload = Type.Object(
  {
    pubkey: Jwk,
    alg: Type.Optional(Type.String({ maxLength: 16 })),
    domain: Type.Optional(Type.String({ maxLength: 256 })),
    address: Type.String({ maxLength: 128 }),
    chain: Type.Optional(Type.String({ maxLength: 16 })),
    expires: Type.String({ maxLength: 64 }),
  },
  CLOSED,
);
const Digest = Type.String({ pattern: HASH64_PATTERN });
/** The first four are the deployed form. The others say what it leaves open; a request that needs one is refused without it. */
const OperationPayload = Type.Object(
  {
    time: Type.String({ maxLength: 64 }),
    method: Type.String({ maxLength: 16 }),
    /** Without the query. */
    path: Type.String({ maxLength: 1_024 }),
    domain: Type.String({ maxLength: 256 }),
    /** The node's own id: several nodes may share a domain. */
    node: Type.Optional(Digest),
    /** Without the question mark. */
    query: Type.Optional(Type.String({ maxLength: 1_024 })),
    body_sha256: Type.Optional(Digest),
  },
  CLOSED,
);
export type SignedPart = Static<typeof Signed>;

const parseSigned = createParser(Signed, 'header');
const parseKey = createParser(KeyPayload, 'X-SignedPubKey');
const parseOperation = createParser(OperationPayload, 'X-SignedOperation');

const ECDSA = { name: 'ECDSA', hash: 'SHA-256' } as const;

/** The request that came, which the signed words must be about. */
export interface ExpectedOperation {
  readonly domain: string;
  /** The id of the node that was asked. */
  readonly node: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Without the question mark; empty where there is none. */
  readonly query: string;
  readonly hasBody: boolean;
  /** Whether query and body may be left open, as deployed clients leave them. */
  readonly isLoose?: boolean | undefined;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

export interface OwnerOperation {
  /** Who asks. */
  readonly address: string;
  /** The SHA-256 of what was signed: the same operation has the same one, however its headers are written. */
  readonly digest: string;
  /** What the body must be, which the caller compares; undefined where there is no body. */
  readonly bodySha256: string | undefined;
}

const malformed = (what: string) => new AppError('INVALID_PARAMETERS', what);
const refused = (why: string) => new AppError('INVALID_SIGNATURE', why);

/** Of a date that does not fit the node's clock: how far off it is, so that whoever signed sees which clock is wrong. */
function untimely(what: string, date: string, nowMs: number): AppError {
  const offSeconds = Math.round((Date.parse(date) - nowMs) / 1000);
  const off = `${Math.abs(offSeconds)} seconds ${offSeconds < 0 ? 'before' : 'after'} the time of the node's clock`;
  const why = Number.isNaN(offSeconds) ? 'at no date' : `${off}; look at the clocks`;
  return new AppError('INVALID_SIGNATURE', `${what} ${why}`, {
    details: { node_time: Math.floor(nowMs / 1000) },
  });
}

/** A header's value, or the same as an object from a WebSocket's first frame. Throws INVALID_PARAMETERS. */
function readPart(value: unknown, name: string): { part: SignedPart; text: string; payload: unknown } {
  if (typeof value === 'string' && value.length > HEADER_CHARS_MAX) throw malformed(`${name} is too long`);
  const part = parseSigned(typeof value === 'string' ? readJson(value, name) : value);
  const bytes = hexToBytes(part.payload);
  if (!bytes) throw malformed(`the payload of ${name} is not hexadecimal`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw malformed(`the payload of ${name} is not text`);
  }
  return { part, text, payload: readJson(text, name) };
}

function readJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed(`${name} is not JSON`);
  }
}

/**
 * Verifies both headers of a request and gives who asks, and what for. Throws SIGNATURE_REQUIRED where there are none,
 * INVALID_PARAMETERS for a malformed one, INVALID_SIGNATURE for all else.
 */
export async function verifyOwnerPass(
  headers: { readonly publicKey: unknown; readonly operation: unknown },
  expected: ExpectedOperation,
): Promise<OwnerOperation> {
  if (headers.publicKey === undefined || headers.operation === undefined)
    throw new AppError('SIGNATURE_REQUIRED', 'X-SignedPubKey and X-SignedOperation are needed');
  const outer = readPart(headers.publicKey, 'X-SignedPubKey');
  const inner = readPart(headers.operation, 'X-SignedOperation');
  const key = parseKey(outer.payload);
  const address = verifyKey(outer.text, outer.part.signature, key, expected.nowMs);
  await verifyOperation(inner.text, inner.part.signature, key.pubkey);
  const operation = parseOperation(inner.payload);
  checkOperation(operation, expected);
  return { address, digest: sha256Hex(inner.text), bodySha256: operation.body_sha256 };
}

function verifyKey(
  text: string,
  signature: string,
  { address, chain = 'ETH', expires }: Static<typeof KeyPayload>,
  nowMs: number,
): string {
  if (chain !== 'ETH') throw new AppError('UNKNOWN_CHAIN', 'owners are verified on the chain ETH only');
  const owner = parseEvmAddress(address);
  const signer = recoverPersonalSigner(text, signature.replace(/^0x/, ''));
  if (signer === undefined || signer !== owner) throw refused('the key was not signed by the address');
  // What is no date compares as false: such a key is never in force.
  if (!(Date.parse(expires) > nowMs)) throw untimely('the signed key expired', expires, nowMs);
  return owner;
}

async function verifyOperation(text: string, signature: string, jwk: Static<typeof Jwk>): Promise<void> {
  const bytes = hexToBytes(signature.replace(/^0x/, ''));
  if (bytes?.length !== 64) throw refused('the signature of the operation is not 64 bytes');
  let isValid = false;
  try {
    const { kty, crv, x, y } = jwk;
    const algorithm = { name: 'ECDSA', namedCurve: crv };
    const key = await crypto.subtle.importKey('jwk', { kty, crv, x, y }, algorithm, false, ['verify']);
    const signed = new TextEncoder().encode(text);
    isValid = await crypto.subtle.verify(ECDSA, key, new Uint8Array(bytes), signed);
  } catch {
    throw refused('the signed key is not one of P-256');
  }
  if (!isValid) throw refused('the operation was not signed by the key');
}

function checkOperation(operation: Static<typeof OperationPayload>, expected: ExpectedOperation): void {
  if (!(Math.abs(Date.parse(operation.time) - expected.nowMs) <= OPERATION_WINDOW_MS))
    throw untimely('the operation was signed', operation.time, expected.nowMs);
  if (operation.domain !== expected.domain)
    throw refused(`the operation was signed for another node than ${expected.domain}`);
  const { method, path, node, query, hasBody, isLoose = false } = expected;
  if (operation.node !== undefined && operation.node !== node)
    throw refused(`the operation was signed for another node than ${node}`);
  if (operation.method.toUpperCase() !== method) throw refused('the operation was signed for another method');
  if (operation.path !== path) throw refused('the operation was signed for another path');
  // A reader's query only chooses what the reader sees, and deployed clients leave it open.
  const mayLeaveOut = isLoose || method === 'GET' || query === '';
  if (operation.query === undefined ? !mayLeaveOut : operation.query !== query)
    throw refused('the operation was signed for another query; sign it as the member query');
  if (operation.body_sha256 === undefined && hasBody && !isLoose)
    throw refused('the operation does not cover the body; sign its SHA-256 as the member body_sha256');
}
