import { secp256k1 } from '@noble/curves/secp256k1.js';
import {
  AppError,
  bytesToHex,
  type EvmAddress,
  evmAddressOf,
  hexToBytes,
  keccak256,
} from '@skerry/protocol/forms';

/** A transaction of EIP-1559, without an access list. Amounts in wei. */
export interface EvmTransaction {
  readonly chainId: number;
  readonly nonce: number;
  readonly maxPriorityFeePerGas: bigint;
  readonly maxFeePerGas: bigint;
  readonly gas: bigint;
  /** null: a contract is put on the chain. */
  readonly to: string | null;
  readonly value: bigint;
  /** `0x` and hexadecimal digits. */
  readonly data: string;
}

export interface SignedTransaction {
  /** `0x` and hexadecimal digits, as nodes take it. */
  readonly raw: string;
  readonly hash: string;
}

/** A key that pays for transactions. It is held in memory only and never printed. */
export interface Wallet {
  readonly address: EvmAddress;
  sign(transaction: EvmTransaction): SignedTransaction;
}

type Rlp = Uint8Array | readonly Rlp[];

const TYPE = 2;

/** Big-endian, without leading zeros: what RLP takes for a number. */
function numberBytes(value: bigint): Uint8Array {
  if (value === 0n) return new Uint8Array();
  const digits = value.toString(16);
  return hexToBytes(digits.length % 2 === 0 ? digits : `0${digits}`)!;
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function headOf(length: number, short: number): Uint8Array {
  if (length < 56) return Uint8Array.of(short + length);
  const size = numberBytes(BigInt(length));
  return concat([Uint8Array.of(short + 55 + size.length), size]);
}

/** Recursive Length Prefix (Yellow Paper, appendix B). */
function encodeRlp(value: Rlp): Uint8Array {
  if (value instanceof Uint8Array) {
    if (value.length === 1 && value[0]! < 0x80) return value;
    return concat([headOf(value.length, 0x80), value]);
  }
  const inner = concat(value.map(encodeRlp));
  return concat([headOf(inner.length, 0xc0), inner]);
}

function bytesOf(text: string, what: string): Uint8Array {
  const bytes = hexToBytes(text);
  if (!bytes) throw new AppError('INVALID_PARAMETERS', `${what} is not hexadecimal`);
  return bytes;
}

function fieldsOf(transaction: EvmTransaction): Rlp[] {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, value, data } = transaction;
  return [
    numberBytes(BigInt(chainId)),
    numberBytes(BigInt(nonce)),
    numberBytes(maxPriorityFeePerGas),
    numberBytes(maxFeePerGas),
    numberBytes(gas),
    to === null ? new Uint8Array() : bytesOf(to, 'the receiver'),
    numberBytes(value),
    bytesOf(data, 'the data'),
    [],
  ];
}

const typed = (fields: readonly Rlp[]) => concat([Uint8Array.of(TYPE), encodeRlp(fields)]);

/** @param privateKey 64 hexadecimal digits, with or without `0x`. Throws INVALID_PARAMETERS */
export function createWallet(privateKey: string): Wallet {
  const key = hexToBytes(privateKey.trim());
  if (key?.length !== 32 || !secp256k1.utils.isValidSecretKey(key))
    throw new AppError(
      'INVALID_PARAMETERS',
      'a private key is 64 hexadecimal digits within the range of secp256k1',
    );
  return {
    address: evmAddressOf(secp256k1.getPublicKey(key, false)),
    sign(transaction) {
      const fields = fieldsOf(transaction);
      const signature = secp256k1.sign(keccak256(typed(fields)), key, {
        prehash: false,
        format: 'recovered',
      });
      const number = (from: number) =>
        numberBytes(BigInt(`0x${bytesToHex(signature.subarray(from, from + 32))}`));
      const raw = typed([...fields, numberBytes(BigInt(signature[0]!)), number(1), number(33)]);
      return { raw: `0x${bytesToHex(raw)}`, hash: `0x${bytesToHex(keccak256(raw))}` };
    },
  };
}
