import { blake2b } from '@noble/hashes/blake2.js';
import { AppError } from '../errors.ts';
import { Type } from '../type.ts';
import { verifyEcdsa, verifyEd25519 } from './curves.ts';
import { base58check, createJsonSignatureParser, decodeCanonical, utf8 } from './encoding.ts';
import { defineFamily, expectForm, type SigningContext } from './family.ts';

const parseSignature = createJsonSignatureParser(
  Type.Object(
    {
      signature: Type.String(),
      publicKey: Type.String(),
      signingType: Type.Optional(Type.Union([Type.Literal('raw'), Type.Literal('micheline')])),
      // Without spaces, so that a signed sentence is read in one way only.
      dAppUrl: Type.Optional(Type.String({ pattern: '^[\\x21-\\x7e]+$' })),
    },
    { additionalProperties: false },
  ),
);

interface Kind {
  readonly addressPrefix: readonly number[];
  readonly keyPrefix: readonly number[];
  readonly keyBytes: number;
  readonly signaturePrefix: readonly number[];
  readonly verify: (signature: Uint8Array, digest: Uint8Array, publicKey: Uint8Array) => boolean;
}

/** By what a public key begins with. The numbers make base58 begin with edpk, edsig, tz1 and so on. */
const KINDS: Readonly<Record<string, Kind>> = {
  edpk: {
    addressPrefix: [6, 161, 159],
    keyPrefix: [13, 15, 37, 217],
    keyBytes: 32,
    signaturePrefix: [9, 245, 205, 134, 18],
    verify: verifyEd25519,
  },
  sppk: {
    addressPrefix: [6, 161, 161],
    keyPrefix: [3, 254, 226, 86],
    keyBytes: 33,
    signaturePrefix: [13, 115, 101, 19, 63],
    verify: (signature, digest, publicKey) => verifyEcdsa(digest, signature, publicKey),
  },
};

/** Signatures written without their curve. */
const GENERIC_SIGNATURE_PREFIX = [4, 130, 43];
const ADDRESS_PREFIXES: Readonly<Record<string, readonly number[]>> = {
  tz1: KINDS.edpk!.addressPrefix,
  tz2: KINDS.sppk!.addressPrefix,
};
/** What deployed clients sign where they name no site. */
const DEFAULT_DAPP_URL = 'aleph.im';

function decodePrefixed(text: string, prefix: readonly number[], lengthBytes: number): Uint8Array {
  const bytes = decodeCanonical(base58check, text, prefix.length + lengthBytes);
  expectForm(
    prefix.every((byte, i) => byte === bytes[i]),
    'prefix',
  );
  return bytes.subarray(prefix.length);
}

/** The packed sentence that wallets show and sign (`05 01 00`, the count of its hexadecimal digits in decimal, the sentence). */
function michelinePayload(text: string, dAppUrl: string, timestampMs: number | undefined): Uint8Array {
  expectForm(timestampMs !== undefined, 'micheline without a time');
  const time = new Date(timestampMs).toISOString();
  const sentence = utf8(`Tezos Signed Message: ${dAppUrl} ${time} ${text}`);
  const head = utf8(`\x05\x01\x00${2 * sentence.length}`);
  const payload = new Uint8Array(head.length + sentence.length);
  payload.set(head);
  payload.set(sentence, head.length);
  return payload;
}

/** Tezos: BLAKE2b-256 of the text or of its micheline sentence, signed by an ed25519 (tz1) or secp256k1 (tz2) key. */
export const tezos = defineFamily({
  addressForm: 'tz1 or tz2 and base58 with its checksum',
  parseAddress(text) {
    const prefix = ADDRESS_PREFIXES[text.slice(0, 3)];
    if (prefix === undefined && /^(tz[34]|KT1)/.test(text)) {
      throw new AppError(
        'INVALID_ADDRESS',
        `addresses of the kind ${text.slice(0, 3)} cannot sign here; tz1 and tz2 can`,
      );
    }
    expectForm(prefix !== undefined, 'kind');
    decodePrefixed(text, prefix, 20);
    return text;
  },
  verify(text, field, sender, context: SigningContext) {
    const { signature, publicKey, signingType = 'raw', dAppUrl = DEFAULT_DAPP_URL } = parseSignature(field);
    const kind = KINDS[publicKey.slice(0, 4)];
    expectForm(kind !== undefined, 'kind of key');
    const key = decodePrefixed(publicKey, kind.keyPrefix, kind.keyBytes);
    const keyHash = blake2b(key, { dkLen: 20 });
    if (base58check.encode(Uint8Array.of(...kind.addressPrefix, ...keyHash)) !== sender) return false;
    const isGeneric = signature.startsWith('sig');
    const bytes = decodePrefixed(signature, isGeneric ? GENERIC_SIGNATURE_PREFIX : kind.signaturePrefix, 64);
    const payload = signingType === 'raw' ? utf8(text) : michelinePayload(text, dAppUrl, context.timestampMs);
    return kind.verify(bytes, blake2b(payload, { dkLen: 32 }), key);
  },
});
