import { sha256Hex } from '../hash.ts';
import { canonicalJson } from '../json/canonical.ts';
import type { InstanceView, MessageStatus } from '../views.ts';

/**
 * Digests of sets (docs/api.md): the sum of the SHA-256 of every element, as numbers of 256 bits, modulo 2^256. It is the same
 * for the same set, in whatever order it grew, and an element that comes or goes is added or taken away.
 */
export interface SetDigest {
  readonly count: number;
  /** 64 hexadecimal digits. */
  readonly digest: string;
}

const BITS = 256;
const DIGITS = 64;
const EMPTY: SetDigest = { count: 0, digest: '0'.repeat(DIGITS) };

/** A digest as it grows. Elements are texts. */
export class SetSum {
  #sum: bigint;
  #count: number;

  constructor({ count, digest }: SetDigest = EMPTY) {
    this.#sum = BigInt(`0x${digest}`);
    this.#count = count;
  }

  #move(element: string, step: 1 | -1): void {
    const hash = BigInt(`0x${sha256Hex(element)}`);
    this.#sum = BigInt.asUintN(BITS, step === 1 ? this.#sum + hash : this.#sum - hash);
    this.#count += step;
  }

  add(element: string): void {
    this.#move(element, 1);
  }

  remove(element: string): void {
    this.#move(element, -1);
  }

  digest(): SetDigest {
    return { count: this.#count, digest: this.#sum.toString(16).padStart(DIGITS, '0') };
  }
}

/**
 * How a message counts in the digest of all messages; undefined: it does not. Nodes must agree on what is in force and what is forgotten;
 * pending and rejected are what one node happens to know or lack.
 */
export const messageElement = (itemHash: string, status: MessageStatus | null): string | undefined =>
  status === 'processed' || status === 'forgotten' ? `${itemHash} ${status}` : undefined;

/** How an instance counts in the digest of all instances: all of it, as `GET /instances/{id}` answers it, in canonical JSON. */
export const instanceElement = (view: InstanceView): string => canonicalJson(view);
