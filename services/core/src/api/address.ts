import { normaliseAddress, parseAccountAddress } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { isNamed } from '../state/addresses/named.ts';
import type { Schema } from '../store/schema.ts';

/**
 * An address that is asked for, in the one spelling it is kept in. One that no chain has would look like an empty account, so it is
 * refused; but a message may name any text as its owner, and what is kept here can be read. Throws INVALID_ADDRESS.
 */
export async function readAddress(db: Kysely<Schema>, text: string): Promise<string> {
  const address = normaliseAddress(text);
  try {
    return parseAccountAddress(address);
  } catch (error) {
    if (await isNamed(db, address)) return address;
    throw error;
  }
}
