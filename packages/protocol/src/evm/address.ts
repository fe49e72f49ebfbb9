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

/**
 * An address as a person or another program wrote it out. Capital letters among small ones are its checksum (ERC-55), as every wallet
 * shows it: where they do not fit, a digit is wrong. Throws INVALID_ADDRESS.
 */
export function parseTypedEvmAddress(text: string): EvmAddress {
  const address = parseEvmAddress(text);
  const digits = text.slice(2);
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (isMixed && checksumAddress(address) !== `0x${digits}`)
    throw new AppError(
      'INVALID_ADDRESS',
      `the capital letters of ${text} are its checksum, and they do not fit: a digit of it is wrong; copy it again, or write it in lower case if you know that it is right`,
    );
  return address;
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
