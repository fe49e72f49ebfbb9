/** The aggregate in which owners claim names: `{NAME: {message_id, type: 'instance'}}`, null where a claim was taken back. */
export const DOMAINS_KEY = 'domains';

const LABEL = '(?!-)[a-z0-9-]{1,63}(?<!-)';
const NAME = new RegExp(`^(?:${LABEL}\\.)+${LABEL}$`);
const NAME_CHARS_MAX = 253;

/** A host name in lower case, or undefined where it is none (RFC 1123; IDN in its ASCII form). */
export function parseDomainName(text: string): string | undefined {
  const name = text.toLowerCase().replace(/\.$/, '');
  // A name of digits only at its end would be an address.
  const isName = name.length <= NAME_CHARS_MAX && NAME.test(name) && !/\.[0-9]+$/.test(name);
  return isName ? name : undefined;
}
