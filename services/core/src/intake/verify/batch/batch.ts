import {
  evmAddressOf,
  type PersonalCheck,
  type PersonalClaim,
  readPersonalClaim,
  recoverPersonalKey,
} from '@skerry/protocol';
import { type BatchCheck, VERDICTS } from './addon.ts';
import { CLAIMS_MAX, type KeyedClaim, packClaims } from './claims.ts';
import { KnownKeys } from './known-keys.ts';

/** Below it, a batch gains less than a third of what recovery costs, and a wrong one loses as much. */
const CLAIMS_MIN = 4;

interface Pending extends KeyedClaim {
  readonly owner: number;
  readonly sender: string;
}

const isSignedBy = (claim: PersonalClaim, sender: string): Uint8Array | undefined => {
  const key = recoverPersonalKey(claim);
  return key && evmAddressOf(key) === sender ? key : undefined;
};

/** Signatures that are judged together. */
export interface BatchRound {
  /** For what is called `owner`: of a known sender it says yes, and `settle` tells whether that was right. */
  checkOf(owner: number): PersonalCheck;
  /** Owners whose yes was wrong: nothing that followed from it counts, and they are to be judged by recovery. Once. */
  settle(): readonly number[];
}

/**
 * Checks signatures of senders whose keys were recovered before, many in one sum (native/batch.c). A batch that does not
 * hold is judged signature by signature, by recovery, so that the verdict on each is always that of recovery.
 */
export class SignatureBatch {
  readonly #check: BatchCheck;
  readonly #least: number;
  readonly #keys = new KnownKeys();

  /** @param least claims that are worth a batch */
  constructor(check: BatchCheck, least = CLAIMS_MIN) {
    this.#check = check;
    this.#least = least;
  }

  start(): BatchRound {
    const pending: Pending[] = [];
    return {
      checkOf: (owner) => (text, signature, sender) => {
        const claim = readPersonalClaim(text, signature);
        if (!claim) return false;
        const key = this.#keys.get(sender);
        if (key && pending.length < CLAIMS_MAX) {
          pending.push({ owner, claim, key, sender });
          return true;
        }
        const recovered = isSignedBy(claim, sender);
        if (recovered) this.#keys.set(sender, recovered);
        return recovered !== undefined;
      },
      settle: () => (this.#holds(pending) ? [] : findWrong(pending)),
    };
  }

  #holds(pending: readonly Pending[]): boolean {
    if (pending.length < this.#least) return false;
    const { claims, keys } = packClaims(pending);
    return this.#check(claims, keys) === VERDICTS.holds;
  }
}

const findWrong = (pending: readonly Pending[]): number[] =>
  pending.filter(({ claim, sender }) => !isSignedBy(claim, sender)).map(({ owner }) => owner);
