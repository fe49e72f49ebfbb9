import { parseTypedEvmAddress } from '@skerry/protocol/forms';
import type { Context } from './context.ts';
import { parseList } from './options.ts';

/**
 * An address that a command names. One that no chain has is refused before anything is signed or asked: credits that are granted to it
 * would be lost, and its lists are empty for ever. Throws INVALID_ADDRESS.
 */
export async function readAddress(text: string): Promise<string> {
  if (/^0x/i.test(text)) return parseTypedEvmAddress(text);
  // Only here, since the other families bring their curves.
  const { parseAccountAddress } = await import('@skerry/protocol');
  return parseAccountAddress(text);
}

/** Addresses that stand between commas. Throws INVALID_ADDRESS. */
export const readAddresses = (text: string): Promise<string[]> =>
  Promise.all(parseList(text).map(readAddress));

/** Whose things are asked for: the address that is named, else that of the key. Throws INVALID_ADDRESS. */
export const ownerOf = async (context: Context, given: string | undefined): Promise<string> =>
  given === undefined ? (await context.loadSigner()).address : readAddress(given);
