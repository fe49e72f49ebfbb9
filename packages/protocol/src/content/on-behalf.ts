import { LIMITS } from '../limits.ts';
import { Type } from '../type.ts';

/** Text without control characters. */
export const PRINTABLE = '^[^\\u0000-\\u001f\\u007f]*$';

/**
 * `address` in a content: whose message it is, where that is not its signer. Whether the signer may speak for that
 * address is decided from the address's `security` aggregate (docs/decisions.md 6), not here.
 */
export const OnBehalfOf = Type.String({
  minLength: 1,
  maxLength: LIMITS.addressChars,
  pattern: PRINTABLE,
  description: 'the address on whose behalf the signer acts; the signer itself where left out',
});

const EVM_ADDRESS = /^0[xX][0-9a-fA-F]{40}$/;

/**
 * The one spelling under which an address of any chain is kept and compared: lower case where it has the form of an
 * EVM address, as written elsewhere. A content does not name the chain of its address.
 */
export function normaliseAddress(text: string): string {
  return EVM_ADDRESS.test(text) ? text.toLowerCase() : text;
}

/**
 * Whose message it is: the address that its content names, else its signer.
 *
 * @param sender as verified, in the one spelling of its chain
 */
export function ownerOf(sender: string, content: { readonly address?: unknown }): string {
  return typeof content.address === 'string' ? normaliseAddress(content.address) : sender;
}
