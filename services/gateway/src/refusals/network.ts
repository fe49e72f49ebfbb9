import { clientKeyOf, networkKeyOf, spellAddress } from '@skerry/kit';

const LAST_NUMBER = /[0-9]+$/;

/** The network that an address is told of under: an IPv4 /24 or an IPv6 /48, in one spelling; null of what is no address. */
export function networkOf(address: string): string | null {
  const client = clientKeyOf(address);
  const network = networkKeyOf(client);
  if (network !== undefined) return `${spellAddress(network.slice(0, network.indexOf('/')))}/48`;
  return LAST_NUMBER.test(client) ? client.replace(LAST_NUMBER, '0/24') : null;
}
