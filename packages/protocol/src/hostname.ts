import { wordlist } from '@scure/bip39/wordlists/english.js';
import { AppError } from './errors.ts';
import { parseItemHash } from './hash.ts';

/** Four words of the BIP-39 English list (specification, "Subdomain derivation"): the top 44 bits of a hash, 11 bits a word. */
const BITS_PER_WORD = 11n;
const WORDS = 4;
const SHIFT = 256n - BITS_PER_WORD * BigInt(WORDS);

const indexOfWord = new Map(wordlist.map((word, index) => [word, index]));

/** The host name of an instance, without the parent domain: four words joined by hyphens. Throws INVALID_HASH. */
export function hostnameOf(hash: string): string {
  const prefix = BigInt(`0x${parseItemHash(hash)}`) >> SHIFT;
  return hostnameOfPrefix(prefix);
}

function hostnameOfPrefix(prefix: bigint): string {
  const words: string[] = [];
  for (let i = WORDS - 1; i >= 0; i--)
    words.push(wordlist[Number((prefix >> (BITS_PER_WORD * BigInt(i))) & 2047n)]!);
  return words.join('-');
}

/** The top 44 bits that a host name stands for. Case does not matter. Throws INVALID_HOSTNAME. */
export function prefixOfHostname(hostname: string): bigint {
  const words = hostname.toLowerCase().split('-');
  if (words.length !== WORDS) {
    throw new AppError('INVALID_HOSTNAME', `a host name is ${WORDS} words joined by hyphens`);
  }
  let prefix = 0n;
  for (const word of words) {
    const index = indexOfWord.get(word);
    if (index === undefined) {
      throw new AppError(
        'INVALID_HOSTNAME',
        `${JSON.stringify(word.slice(0, 32))} is not a word of the list`,
      );
    }
    prefix = (prefix << BITS_PER_WORD) | BigInt(index);
  }
  return prefix;
}

/** Whether a hash has this host name. */
export function hasHostname(hash: string, hostname: string): boolean {
  return BigInt(`0x${parseItemHash(hash)}`) >> SHIFT === prefixOfHostname(hostname);
}
