import { type LookupAddress, lookup } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { createAddressSet } from './client-address.ts';

/** What IANA's special-purpose registries (RFC 6890) do not give to the public, and multicast. */
const NOT_PUBLIC_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

/**
 * Of IPv6 only 2000::/3 is public at all (RFC 4291). That leaves out loopback, link-local, site-local, unique local,
 * multicast, and IPv4 inside IPv6: mapped (::ffff:0:0/96), compatible (::/96) and NAT64 (64:ff9b::/96, 64:ff9b:1::/48).
 */
const PUBLIC_V6: readonly [string, number] = ['2000::', 3];
/** Of these the first two lead to IPv4 addresses or to nowhere: Teredo and other protocols, 6to4. Then documentation, AS112. */
const NOT_PUBLIC_V6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2002::', 16],
  ['2001:db8::', 32],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
];

const notPublic = new BlockList();
for (const [network, bits] of NOT_PUBLIC_V4) notPublic.addSubnet(network, bits, 'ipv4');
for (const [network, bits] of NOT_PUBLIC_V6) notPublic.addSubnet(network, bits, 'ipv6');
const publicV6 = new BlockList();
publicV6.addSubnet(...PUBLIC_V6, 'ipv6');

/** Whether an IP address is one that anybody on the internet can be reached at. What is not an IP address is not. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !notPublic.check(address, 'ipv4');
  if (isIP(address) !== 6 || address.includes('%')) return false;
  return publicV6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6');
}

/**
 * Whether an IPv6 address lies in a network that is routed within a private one: unique local addresses (RFC 4193), and those
 * of examples and laboratories (RFC 3849).
 */
export const isPrivateIpv6 = createAddressSet(['fc00::/7', '2001:db8::/32']);

export type MayReach = (address: string) => boolean;

const anywhere: MayReach = () => true;

/**
 * Which addresses may be asked on a stranger's word: public ones, or all where the operator says that the network is private.
 * The one rule of every service.
 * @param allowed addresses and ranges that may be asked although they are not public
 */
export function createReach(allowPrivate: boolean, allowed: readonly string[] = []): MayReach {
  if (allowPrivate) return anywhere;
  const isAllowed = createAddressSet(allowed);
  return (address) => isPublicAddress(address) || isAllowed(address);
}

/** 0: either. */
export type Family = 0 | 4 | 6;

const DNS_TIMEOUT_MS = 3_000;
const DNS_TRIES = 2;
/** A name with more addresses is looked at no further. */
const ADDRESSES_MAX = 32;

const hostOf = (hostname: string) => hostname.replace(/^\[|\]$/g, '');
const isLocalhost = (hostname: string) => /^(.+\.)?localhost\.?$/i.test(hostname);

/**
 * What a stranger's name stands for, by the name servers alone (c-ares): the system's resolver has four threads, which one
 * dead name server would hold up. Rejects where the name has no address.
 * @param dnsServers `address:port` of name servers; the machine's own where left out
 */
export async function resolveName(hostname: string, dnsServers?: readonly string[]): Promise<string[]> {
  // RFC 6761, section 6.3
  if (isLocalhost(hostname)) return ['127.0.0.1', '::1'];
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (dnsServers) resolver.setServers(dnsServers);
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return addresses.slice(0, ADDRESSES_MAX);
  const [failed] = answers;
  throw failed.status === 'rejected' ? failed.reason : new Error('no address');
}

/** Where the operator lets everything be asked, names mean what they mean on this machine. */
const lookUpHere = (host: string) =>
  new Promise<string[]>((resolve, reject) => {
    lookup(host, { all: true }, (error, found: LookupAddress[]) =>
      error ? reject(error) : resolve(found.map(({ address }) => address)),
    );
  });

/** The addresses of a host that may be asked, of one family. None where the name has none. */
export async function findAddresses(
  hostname: string,
  family: Family,
  mayReach: MayReach,
  dnsServers?: readonly string[],
): Promise<LookupAddress[]> {
  const host = hostOf(hostname);
  const isHere = mayReach === anywhere && dnsServers === undefined;
  const resolve = () => (isHere ? lookUpHere(host) : resolveName(host, dnsServers)).catch(() => []);
  const found = isIP(host) === 0 ? await resolve() : [host];
  return found
    .map((address) => ({ address, family: isIP(address) }))
    .filter((one) => (family === 0 || family === one.family) && mayReach(one.address));
}

/** Resolves names for a connection: what was checked is what is connected to. */
export function createLookup(
  family: Family,
  mayReach: MayReach,
  dnsServers?: readonly string[],
): LookupFunction {
  return (hostname, options, callback) => {
    void findAddresses(hostname, family, mayReach, dnsServers).then((addresses) => {
      const [first] = addresses;
      if (!first) callback(Object.assign(new Error('no allowed address'), { code: 'ENOTFOUND' }), '');
      else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
