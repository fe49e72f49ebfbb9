import { Type } from '../type.ts';
import { verifyEd25519 } from './curves.ts';
import { createJsonSignatureParser, decodeBase58, utf8 } from './encoding.ts';
import { defineFamily } from './family.ts';

const parseSignature = createJsonSignatureParser(
  Type.Object(
    { signature: Type.String(), publicKey: Type.String(), version: Type.Optional(Type.Literal(1)) },
    { additionalProperties: false },
  ),
);

/** Solana and chains with its accounts: the address is the public key, the plain bytes are signed. */
export const solana = defineFamily({
  addressForm: '32 bytes in base58',
  parseAddress(text) {
    decodeBase58(text, 32);
    return text;
  },
  verify(text, field, sender) {
    const { signature, publicKey } = parseSignature(field);
    if (publicKey !== sender) return false;
    return verifyEd25519(decodeBase58(signature, 64), utf8(text), decodeBase58(sender, 32));
  },
});
