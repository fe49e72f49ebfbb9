import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/** Whether `signature` by `personal_sign` is the sender's over `text`. @param sender in lower case */
export type PersonalCheck = (text: string, signature: string, sender: string) => boolean;

/** What a signature may cover beside the text, and who judges it. */
export interface SigningContext {
  /** The message's own time, Unix milliseconds. Only Tezos' micheline form signs it. */
  readonly timestampMs?: number;
  /**
   * Stands for recovering the signer where somebody checks many at once. It may say yes before it knows; then it tells
   * later which of its answers were wrong, and nothing that follows from them counts.
   */
  readonly checkPersonal?: PersonalCheck | undefined;
}

/** How the signatures of a family of chains are read: the port that every signature family fills. */
export interface SignatureFamily {
  /** What an address looks like, for people. */
  readonly addressForm: string;
  /** The one spelling under which a sender is kept and compared. Throws INVALID_ADDRESS. */
  parseAddress(text: string): string;
  /**
   * Whether `signature` is the sender's over `text`. Never throws.
   *
   * @param sender as `parseAddress` gives it
   */
  verify(text: string, signature: string, sender: string, context?: SigningContext): boolean;
}

/** The rules of one family. Both may throw anything on what is malformed; `defineFamily` gives it its meaning. */
export interface FamilyRules {
  /** What an address looks like, for people. */
  readonly addressForm: string;
  /** Returns the one spelling. */
  readonly parseAddress: (text: string) => string;
  readonly verify: (text: string, signature: string, sender: string, context: SigningContext) => boolean;
}

/**
 * Makes the port of a family's rules. Decoders of strangers' text throw errors of many libraries: here, and nowhere
 * else, they become INVALID_ADDRESS and `false`. Limits come first, since base58 costs the square of its length.
 */
export function defineFamily(rules: FamilyRules): SignatureFamily {
  return {
    addressForm: rules.addressForm,
    parseAddress(text) {
      try {
        if (text.length <= LIMITS.addressChars) return rules.parseAddress(text);
      } catch (cause) {
        if (cause instanceof AppError) throw cause;
        throw new AppError('INVALID_ADDRESS', `an address is ${rules.addressForm}`, { cause });
      }
      throw new AppError('INVALID_ADDRESS', `an address is ${rules.addressForm}`);
    },
    verify(text, signature, sender, context = {}) {
      try {
        if (signature.length > LIMITS.signatureChars || sender.length > LIMITS.addressChars) return false;
        return rules.verify(text, signature, sender, context);
      } catch {
        return false;
      }
    },
  };
}

/** Stops reading what is malformed; `defineFamily` says what that means. */
export function expectForm(condition: boolean, what: string): asserts condition {
  if (!condition) throw new RangeError(what);
}
