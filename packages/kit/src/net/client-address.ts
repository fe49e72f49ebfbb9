import { isIP } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Hops of one X-Forwarded-For that are looked at; no honest chain of proxies is longer. */
const MAX_HOPS = 32;
/** The part of an IPv6 address that one customer of a network has (RFC 6177): all of it is one client. */
const CLIENT_PREFIX_BITS = 64;

/** An address in one spelling; an IPv4 address written inside IPv6 (RFC 4291, section 2.5.5.2) is that IPv4 address. */
function parseAddress(text: string): Address | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(text.replace(/%.*$/, ''));
}

/** An address in one spelling, whatever it was written in; what is no address stays as it is. */
export const spellAddress = (text: string): string => parseAddress(text)?.toString() ?? text;

/** A proxy may write `1.2.3.4:5678` or `[2001:db8::1]:5678`. */
function parseHop(text: string): Address | undefined {
  const bare = text.trim();
  const bracketed = /^\[([^\]]*)\](?::[0-9]{1,5})?$/.exec(bare)?.[1];
  return parseAddress(bracketed ?? bare.replace(/^([0-9.]+):[0-9]{1,5}$/, '$1'));
}

export type AddressSet = (address: string) => boolean;

function parseRange(text: string): readonly [Address, number] {
  const address = parseAddress(text);
  if (address) return [address, address.kind() === 'ipv4' ? 32 : 128];
  const [base, bits, ...rest] = text.split('/');
  const network = parseAddress(base ?? '');
  if (network && rest.length === 0 && /^[0-9]{1,3}$/.test(bits ?? '')) {
    const length = Number(bits);
    if (length <= (network.kind() === 'ipv4' ? 32 : 128)) return [network, length];
  }
  throw new AppError(
    'INVALID_CONFIG',
    `expected an IP address or a range such as 10.0.0.0/8, not ${JSON.stringify(text)}`,
  );
}

/** Addresses and CIDR ranges (`10.0.0.0/8`, `2001:db8::/32`). Throws INVALID_CONFIG. */
export function createAddressSet(ranges: readonly string[]): AddressSet {
  const parsed = ranges.map(parseRange);
  return (text) => {
    const address = parseAddress(text);
    return (
      address !== undefined &&
      parsed.some(([network, bits]) => address.kind() === network.kind() && address.match(network, bits))
    );
  };
}

export interface ClientAddress {
  readonly address: string;
  /** Some proxy that nobody told us to trust sent the request on: who is behind it is not known. */
  readonly isRelayed: boolean;
}

/**
 * Who a request comes from: the nearest address in X-Forwarded-For that is not a trusted proxy. A header from any other
 * peer is not believed, and one that holds something else than addresses where it matters is not used.
 * @param peer the address at the other end of the connection
 */
export function findClient(
  peer: string,
  forwardedFor: string | undefined,
  isTrustedProxy: AddressSet,
): ClientAddress {
  const direct = { address: peer, isRelayed: false };
  if (forwardedFor === undefined || forwardedFor.trim() === '') return direct;
  if (!isTrustedProxy(peer)) return { ...direct, isRelayed: true };
  const hops = forwardedFor.split(',').slice(-MAX_HOPS).reverse();
  for (const [index, hop] of hops.entries()) {
    const address = parseHop(hop)?.toString();
    if (address === undefined) return { ...direct, isRelayed: true };
    if (!isTrustedProxy(address) || index === hops.length - 1) return { address, isRelayed: false };
  }
  return direct;
}

/** What is counted as one client: an IPv4 address, or the /64 of an IPv6 one. */
export function clientKeyOf(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === undefined) return 'unknown';
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${CLIENT_PREFIX_BITS}`);
  return `${network.toString()}/${CLIENT_PREFIX_BITS}`;
}

const PREFIX_END = `::/${CLIENT_PREFIX_BITS}`;

/**
 * The /48 of a client (clientKeyOf) that is an IPv6 /64: one customer of a network may be all clients of it. Undefined for every other:
 * an IPv4 address is a network of its own.
 */
export function networkKeyOf(clientKey: string): string | undefined {
  if (!clientKey.endsWith(PREFIX_END)) return undefined;
  // Zeros at the end are left out: of the four groups of a /64, and the four after it.
  const [first, second = '0', third = '0'] = clientKey.slice(0, -PREFIX_END.length).split(':');
  return `${first || '0'}:${second}:${third}::/48`;
}

const IPV4_PARTS = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}$/;

/**
 * The range that a client (clientKeyOf) is in which somebody can have as a whole at little cost: the /48 of an IPv6 one, the /24 of an IPv4
 * one, the longest prefix that networks announce to each other (RFC 7454, section 6.1.3). A /24 may be many households: what goes by it
 * may hold nobody back where others want nothing.
 */
export function rangeKeyOf(clientKey: string): string | undefined {
  const start = IPV4_PARTS.exec(clientKey)?.[1];
  return start === undefined ? networkKeyOf(clientKey) : `${start}.0/24`;
}
