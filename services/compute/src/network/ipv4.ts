import { AppError } from '@skerry/protocol';
import ipaddr from 'ipaddr.js';

/** The private IPv4 addresses of one instance: a /30, the node's side and the guest's. They are translated at the node. */
export interface Ipv4Link {
  /** `172.20.16.4/30` */
  readonly network: string;
  /** The node's side, network + 1. */
  readonly gateway: string;
  /** The guest's side, network + 2. */
  readonly guest: string;
}

/** Where pools come from (RFC 1918, the second block), and how long they are: 1,024 instances a node. */
const POOLS_FROM = '172.16.0.0/12';
const POOL_LENGTH = 20;
export const LINK_LENGTH = 30;
export const LINKS_PER_POOL = 2 ** (LINK_LENGTH - POOL_LENGTH);
const LINK_ADDRESSES = 2 ** (32 - LINK_LENGTH);

interface Range {
  readonly first: number;
  readonly last: number;
}

/** First and last address of an IPv4 network as numbers. Throws INVALID_ADDRESS. */
function rangeOf(network: string): Range {
  if (!ipaddr.IPv4.isValidCIDRFourPartDecimal(network))
    throw new AppError(
      'INVALID_ADDRESS',
      `an IPv4 network must be an address with a prefix length, not ${network}`,
    );
  const [address, length] = ipaddr.IPv4.parseCIDR(network);
  const size = 2 ** (32 - length);
  const number = address.octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const first = number - (number % size);
  return { first, last: first + size - 1 };
}

function textOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}

/** The pool in its one spelling; a node's is a /20. Throws INVALID_ADDRESS. */
export function parseIpv4Pool(pool: string): string {
  const { first } = rangeOf(pool);
  if (pool !== `${textOf(first)}/${POOL_LENGTH}`)
    throw new AppError(
      'INVALID_ADDRESS',
      `a pool must be an IPv4 /${POOL_LENGTH} network such as 172.20.16.0/20`,
    );
  return pool;
}

/** The link with a number. Throws NO_CAPACITY beyond the last one. */
export function ipv4LinkOf(pool: string, index: number): Ipv4Link {
  const { first, last } = rangeOf(pool);
  const start = first + index * LINK_ADDRESSES;
  if (index < 0 || start > last) throw new AppError('NO_CAPACITY', `the pool ${pool} has no link ${index}`);
  return {
    network: `${textOf(start)}/${LINK_LENGTH}`,
    gateway: textOf(start + 1),
    guest: textOf(start + 2),
  };
}

/** The number of the link whose gateway an address is; undefined where it is none of the pool's. */
export function findLink(pool: string, gateway: string | undefined): number | undefined {
  if (gateway === undefined || !ipaddr.IPv4.isValidFourPartDecimal(gateway)) return undefined;
  const { first, last } = rangeOf(pool);
  const number = rangeOf(`${gateway}/32`).first;
  const offset = number - 1 - first;
  return offset < 0 || number > last || offset % LINK_ADDRESSES !== 0 ? undefined : offset / LINK_ADDRESSES;
}

/**
 * A pool that overlaps none of the networks that are in use, beginning the search at a random place: nodes of one machine
 * get different ones. Pure. Throws NO_CAPACITY when all are taken.
 * @param taken networks as `ip route` writes them: with a length, or one address
 * @param random from 0 to less than 1
 */
export function chooseIpv4Pool(taken: readonly string[], random: number): string {
  const { first, last } = rangeOf(POOLS_FROM);
  const size = 2 ** (32 - POOL_LENGTH);
  const count = (last - first + 1) / size;
  const used = taken.map((network) => rangeOf(network.includes('/') ? network : `${network}/32`));
  for (let tried = 0; tried < count; tried++) {
    const start = first + ((Math.floor(random * count) + tried) % count) * size;
    const isFree = used.every((range) => range.last < start || range.first > start + size - 1);
    if (isFree) return `${textOf(start)}/${POOL_LENGTH}`;
  }
  throw new AppError('NO_CAPACITY', `every network in ${POOLS_FROM} is in use on this server`);
}
