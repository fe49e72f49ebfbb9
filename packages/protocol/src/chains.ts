import { AppError } from './errors.ts';
import { parseEvmAddress } from './evm/address.ts';
import { recoverPersonalSigner } from './evm/personal-sign.ts';

/** How the signatures of a family of chains are read: the port that every signature family fills. */
export interface SignatureFamily {
  /** The one spelling under which a sender is kept and compared. Throws INVALID_ADDRESS. */
  parseAddress(text: string): string;
  /** Whether `signature` is the sender's over `text`. Never throws. */
  verify(text: string, signature: string, sender: string): boolean;
}

const evm: SignatureFamily = {
  parseAddress: parseEvmAddress,
  verify: (text, signature, sender) => recoverPersonalSigner(text, signature) === sender,
};

/** Chain code -> family. */
export const CHAINS: Readonly<Record<string, SignatureFamily>> = { ETH: evm };

export function familyOf(chain: string): SignatureFamily {
  if (!Object.hasOwn(CHAINS, chain)) {
    throw new AppError(
      'UNKNOWN_CHAIN',
      `the chain ${JSON.stringify(chain)} is not known; known: ${Object.keys(CHAINS).join(', ')}`,
    );
  }
  return CHAINS[chain]!;
}
