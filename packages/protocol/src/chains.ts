import { AppError } from './errors.ts';
import { parseEvmAddress } from './evm/address.ts';
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

const FAMILIES = [...new Set(Object.values(CHAINS))];
const FORMS = FAMILIES.map(({ addressForm }, at) => {
  const [code] = Object.entries(CHAINS).find(([, family]) => family === FAMILIES[at])!;
  return `${code}: ${addressForm}`;
}).join('; ');

/**
 * An address that an account of some chain can have (docs/signatures.md), in the one spelling it is kept in. For what is asked or
 * about to be signed: a message of old may name any text as its owner, and stays as it is. Throws INVALID_ADDRESS.
 */
export function parseAccountAddress(text: string): string {
  if (/^0x/i.test(text)) return parseEvmAddress(text);
  for (const family of FAMILIES) {
    try {
      return family.parseAddress(text);
    } catch {
      // Another family may have it.
    }
  }
  throw new AppError(
    'INVALID_ADDRESS',
    `no chain has the address ${JSON.stringify(text.slice(0, 128))}; they have: ${FORMS}`,
  );
}
