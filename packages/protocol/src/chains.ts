import { AppError } from './errors.ts';
import { avalanche } from './families/avalanche.ts';
import { cosmos } from './families/cosmos.ts';
import { evm } from './families/evm.ts';
import type { SignatureFamily } from './families/family.ts';
import { nuls } from './families/nuls.ts';
import { solana } from './families/solana.ts';
import { substrate } from './families/substrate.ts';
import { tezos } from './families/tezos.ts';

export type { PersonalCheck, SignatureFamily, SigningContext } from './families/family.ts';

const EVM_CHAINS = [
  ...['ETH', 'ARB', 'AURORA', 'BASE', 'BLAST', 'BOB', 'BSC', 'CYBER', 'ETHERLINK', 'FRAX', 'HYPE', 'INK'],
  ...['LENS', 'LINEA', 'LISK', 'METIS', 'MODE', 'OP', 'POL', 'SONIC', 'STT', 'UNICHAIN', 'WLD', 'ZORA'],
];

/** Chain code -> family (docs/signatures.md). */
export const CHAINS: Readonly<Record<string, SignatureFamily>> = {
  ...Object.fromEntries(EVM_CHAINS.map((code) => [code, evm])),
  SOL: solana,
  ES: solana,
  DOT: substrate,
  CSDK: cosmos,
  AVAX: avalanche,
  NULS2: nuls,
  TEZOS: tezos,
};

export function familyOf(chain: string): SignatureFamily {
  if (!Object.hasOwn(CHAINS, chain)) {
    throw new AppError(
      'UNKNOWN_CHAIN',
      `the chain ${JSON.stringify(chain)} is not known; known: ${Object.keys(CHAINS).join(', ')}`,
    );
  }
  return CHAINS[chain]!;
}
