import { secp256k1 } from '@noble/curves/secp256k1.js';
import {
  AppError,
  bytesToHex,
  type EvmAddress,
  evmAddressOf,
  hexToBytes,
  personalSignDigest,
} from '@skerry/protocol/forms';

/** Something that signs texts for an address, perhaps after its owner was asked: a wallet, or a key in another thread. */
export interface AskedSigner {
  readonly chain: string;
  /** Lower case. */
  readonly address: EvmAddress;
  /** EIP-191. Rejects where the owner refuses. */
  sign(text: string): string | Promise<string>;
}

/** One whose key is at hand. */
export interface Signer extends AskedSigner {
  sign(text: string): string;
}

/** A new private key: 0x and 64 hexadecimal digits. Whoever has it is the address. */
export function generatePrivateKey(): string {
  return `0x${bytesToHex(secp256k1.utils.randomSecretKey())}`;
}

/** A signer of Ethereum personal messages (EIP-191). The key is held in memory only and never printed. */
export function createSigner(privateKey: string): Signer {
  const key = hexToBytes(privateKey.trim());
  if (key?.length !== 32 || !secp256k1.utils.isValidSecretKey(key)) {
    throw new AppError(
      'INVALID_PARAMETERS',
      'a private key is 64 hexadecimal digits within the range of secp256k1',
    );
  }
  return {
    chain: 'ETH',
    address: evmAddressOf(secp256k1.getPublicKey(key, false)),
    sign(text) {
      const signature = secp256k1.sign(personalSignDigest(text), key, {
        prehash: false,
        format: 'recovered',
      });
      return `0x${bytesToHex(signature.subarray(1))}${bytesToHex(Uint8Array.of(27 + signature[0]!))}`;
    },
  };
}
