import { AppError } from '../errors.ts';
import { keccak256 } from '../hash.ts';
import { bytesToHex } from '../hex.ts';

/** An EVM address as this project keeps it: `0x` and 40 lower-case hexadecimal digits. */
export type EvmAddress = `0x${string}`;

/** Lower-cases; the mixed-case checksum (ERC-55) is not asked for, since signers and SDKs send every case. Throws INVALID_ADDRESS. */
export function parseEvmAddress(text: string): EvmAddress {
  const lower = text.toLowerCase();
  if (!/^0x[0-9a-f]{40}$/.test(lower)) {
    throw new AppError('INVALID_ADDRESS', 'an address is 0x and 40 hexadecimal digits');
  }
  return lower as EvmAddress;
}

/** @param publicKey uncompressed, 65 bytes */
export function evmAddressOf(publicKey: Uint8Array): EvmAddress {
  return `0x${bytesToHex(keccak256(publicKey.subarray(1)).subarray(12))}`;
}

/** The mixed-case form for people (ERC-55). */
export function checksumAddress(address: EvmAddress): EvmAddress {
  const digits = address.slice(2);
  const hash = bytesToHex(keccak256(new TextEncoder().encode(digits)));
  const cased = [...digits].map((digit, i) =>
    Number.parseInt(hash[i]!, 16) >= 8 ? digit.toUpperCase() : digit,
  );
  return `0x${cased.join('')}`;
}
