import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { createAddressSet } from './client-address.ts';

/** Where no node of a public network is (IANA special-purpose registries): asking there would be asking our own machines. */
const PRIVATE_RANGES = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/127',
  '64:ff9b:1::/48',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
];

export type MayReach = (address: string) => boolean;

/** Which addresses may be asked: public ones, or all. */
export function createReach(allowPrivate: boolean): MayReach {
  if (allowPrivate) return () => true;
  const isPrivate = createAddressSet(PRIVATE_RANGES);
  return (address) => !isPrivate(address);
}

/** 0: either. */
export type Family = 0 | 4 | 6;

const hostOf = (hostname: string) => hostname.replace(/^\[|\]$/g, '');

/** The addresses of a host that may be asked, of one family. None where the name has none. */
export function findAddresses(
  hostname: string,
  family: Family,
  mayReach: MayReach,
): Promise<LookupAddress[]> {
  const host = hostOf(hostname);
  const literal = isIP(host);
  if (literal !== 0) {
    const fits = (family === 0 || family === literal) && mayReach(host);
    return Promise.resolve(fits ? [{ address: host, family: literal }] : []);
  }
  return new Promise((resolve) => {
    lookup(host, { family, all: true }, (error, addresses) =>
      resolve(error ? [] : addresses.filter(({ address }) => mayReach(address))),
    );
  });
}

/** Resolves names for a connection: what was checked is what is connected to. */
export function createLookup(family: Family, mayReach: MayReach): LookupFunction {
  return (hostname, options, callback) => {
    void findAddresses(hostname, family, mayReach).then((addresses) => {
      const [first] = addresses;
      if (!first)
        callback(Object.assign(new Error('no address that may be asked'), { code: 'ENOTFOUND' }), '');
      else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
