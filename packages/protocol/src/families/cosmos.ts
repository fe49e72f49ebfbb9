import { sha256 } from '@noble/hashes/sha2.js';
import { base64 } from '@scure/base';
import { Type } from '../type.ts';
import { hash160, verifyEcdsa } from './curves.ts';
import { createJsonSignatureParser, decodeBech32, decodeCanonical, equalBytes, utf8 } from './encoding.ts';
import { defineFamily, expectForm } from './family.ts';

const zero = Type.Optional(Type.Literal('0'));

const parseSignature = createJsonSignatureParser(
  Type.Object(
    {
      signature: Type.String(),
      pub_key: Type.Object(
        { type: Type.Literal('tendermint/PubKeySecp256k1'), value: Type.String() },
        { additionalProperties: false },
      ),
      account_number: zero,
      sequence: zero,
    },
    { additionalProperties: false },
  ),
);

/** The hash of the public key in an address of any chain built on the Cosmos SDK. Throws. */
function keyHashOf(address: string): Uint8Array {
  const { prefix, bytes } = decodeBech32(address, 20);
  expectForm(/^[a-z0-9]+$/.test(prefix), 'prefix');
  return bytes;
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '\\u0026', '<': '\\u003c', '>': '\\u003e' };

/** The amino sign document as wallets serialise it: keys sorted, no spaces, `&`, `<` and `>` escaped as Go does. */
export function aminoSignDoc(text: string, signer: string): string {
  const json = JSON.stringify({
    account_number: '0',
    chain_id: 'signed-message-v1',
    fee: { amount: [], gas: '0' },
    memo: '',
    msgs: [{ type: 'signutil/MsgSignText', value: { message: text, signer } }],
    sequence: '0',
  });
  return json.replace(/[&<>]/g, (char) => ESCAPES[char]!);
}

/** Chains of the Cosmos SDK: ECDSA over the SHA-256 of an amino sign document that carries the text. */
export const cosmos = defineFamily({
  addressForm: 'bech32, in lower case, of a 20-byte hash',
  parseAddress(text) {
    keyHashOf(text);
    return text;
  },
  verify(text, field, sender) {
    const { signature, pub_key } = parseSignature(field);
    const publicKey = decodeCanonical(base64, pub_key.value, 33);
    if (!equalBytes(hash160(publicKey), keyHashOf(sender))) return false;
    const digest = sha256(utf8(aminoSignDoc(text, sender)));
    return verifyEcdsa(digest, decodeCanonical(base64, signature, 64), publicKey);
  },
});
