import { bytesToHex } from '../hex.ts';
import type { Secp256k1Engine } from './secp256k1-port.ts';

/** What is used of `node:ffi`, whose types change while it is experimental. */
interface Ffi {
  dlopen(path: string, functions: Readonly<Record<string, unknown>>): { readonly functions: Functions };
  getRawPointer(memory: ArrayBuffer): bigint;
}
type Pointer = bigint;

/** Those of libsecp256k1's public headers (secp256k1.h, secp256k1_recovery.h), the same in all of VERSIONS. */
interface Functions {
  secp256k1_context_create(flags: number): Pointer;
  secp256k1_ecdsa_recoverable_signature_parse_compact(
    context: Pointer,
    signature: Pointer,
    rs: Pointer,
    recoveryId: number,
  ): number;
  secp256k1_ecdsa_recover(context: Pointer, key: Pointer, signature: Pointer, digest: Pointer): number;
  secp256k1_ec_pubkey_serialize(
    context: Pointer,
    output: Pointer,
    length: Pointer,
    key: Pointer,
    flags: number,
  ): number;
}

const pointers = (count: number): 'pointer'[] => Array(count).fill('pointer');
const SIGNATURES: Readonly<Record<keyof Functions, unknown>> = {
  secp256k1_context_create: { arguments: ['uint32'], return: 'pointer' },
  secp256k1_ecdsa_recoverable_signature_parse_compact: {
    arguments: [...pointers(3), 'int32'],
    return: 'int32',
  },
  secp256k1_ecdsa_recover: { arguments: pointers(4), return: 'int32' },
  secp256k1_ec_pubkey_serialize: { arguments: [...pointers(4), 'uint32'], return: 'int32' },
};

/** SONAMEs of libsecp256k1 0.7, 0.6, 0.3 to 0.5 and 0.2, newest first. What is older is no faster than npm's. */
const VERSIONS = [6, 5, 2, 1] as const;

const CONTEXT_VERIFY = 257;
const UNCOMPRESSED = 2;
const KEY_BYTES = 65;
const RS_BYTES = 64;
const DIGEST_BYTES = 32;
/** Where things stand in the memory that the library sees; its own structures have at most 65 bytes. */
const AT = { signature: 0, key: 80, length: 160, output: 176, rs: 256, digest: 320 } as const;
const MEMORY_BYTES = 512;

/** What is recovered where all bytes of digest, r and s are 1, and the parity is 0. */
const KNOWN_KEY =
  '0406105a8bd078e5a49da72597ab0408dba9504d3f5c596b0882ccea78bf95141411d9f545f157554c52841383176a2c5f5127c0f733f708a705193ec248d7a072';
const ones = (count: number) => new Uint8Array(count).fill(1);

/** Node warns that it may change; what is used of it is tried before it is relied on. */
function loadFfi(): Ffi | undefined {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return process.getBuiltinModule('node:ffi') as unknown as Ffi | undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function open(ffi: Ffi): Functions | undefined {
  for (const version of VERSIONS) {
    try {
      return ffi.dlopen(`libsecp256k1.so.${version}`, SIGNATURES).functions;
    } catch {
      // Not on this machine, or built without recovery.
    }
  }
  return undefined;
}

function createEngine(ffi: Ffi, functions: Functions): Secp256k1Engine {
  const {
    secp256k1_ecdsa_recoverable_signature_parse_compact: parse,
    secp256k1_ecdsa_recover: recover,
    secp256k1_ec_pubkey_serialize: serialize,
  } = functions;
  const context = functions.secp256k1_context_create(CONTEXT_VERIFY);
  const memory = new ArrayBuffer(MEMORY_BYTES);
  const bytes = new Uint8Array(memory);
  const start = ffi.getRawPointer(memory);
  const at = (place: keyof typeof AT): Pointer => start + BigInt(AT[place]);
  const [signature, key, length] = [at('signature'), at('key'), at('length')];
  const [output, rs, digest] = [at('output'), at('rs'), at('digest')];
  return {
    name: 'system',
    recover(givenDigest, givenRs, recoveryId) {
      // The library ends the process where it is asked for another recovery id.
      if (recoveryId !== 0 && recoveryId !== 1) return undefined;
      if (givenDigest.length !== DIGEST_BYTES || givenRs.length !== RS_BYTES) return undefined;
      bytes.set(givenRs, AT.rs);
      bytes.set(givenDigest, AT.digest);
      if (parse(context, signature, rs, recoveryId) !== 1) return undefined;
      if (recover(context, key, signature, digest) !== 1) return undefined;
      // A size_t, of which one byte is enough on every machine with the lower byte first.
      bytes.fill(0, AT.length, AT.length + 8);
      bytes[AT.length] = KEY_BYTES;
      serialize(context, output, length, key, UNCOMPRESSED);
      return bytes.slice(AT.output, AT.output + KEY_BYTES);
    },
  };
}

/**
 * Loads the libsecp256k1 of the system, where there is one: newer ones take three fifths to four fifths of the time of the one that
 * npm brings, and there is one for machines that npm has none for. Undefined where Node cannot call it.
 */
export function loadSystemEngine(): Secp256k1Engine | undefined {
  try {
    const ffi = loadFfi();
    const functions = ffi && open(ffi);
    if (!functions) return undefined;
    const engine = createEngine(ffi, functions);
    const key = engine.recover(ones(DIGEST_BYTES), ones(RS_BYTES), 0);
    return key && bytesToHex(key) === KNOWN_KEY ? engine : undefined;
  } catch {
    return undefined;
  }
}
