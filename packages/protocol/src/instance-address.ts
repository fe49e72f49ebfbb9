import ipaddr from 'ipaddr.js';
import { AppError } from './errors.ts';
import { parseItemHash } from './hash.ts';

/** The fourth-and-a-half part of an instance's address that says "instance" (docs/decisions.md 15). */
const KIND_INSTANCE = 3;

export interface InstanceAddress {
  /** The instance's own network, `.../124`. */
  readonly network: string;
  /** The node's side, network + 0. */
  readonly host: string;
  /** The instance's side, network + 1: its public address. */
  readonly guest: string;
}

/** The four 16-bit groups of a node's /64. Throws INVALID_ADDRESS. */
function parseNodePrefix(prefix: string): number[] {
  const [text, length, ...rest] = prefix.split('/');
  if (rest.length > 0 || length !== '64' || !text || !ipaddr.IPv6.isValid(text) || text.includes('%')) {
    throw new AppError(
      'INVALID_ADDRESS',
      `a node's prefix is an IPv6 network of length 64, not ${JSON.stringify(prefix.slice(0, 64))}`,
    );
  }
  const parts = ipaddr.IPv6.parse(text).parts;
  if (parts.slice(4).some((part) => part !== 0)) {
    throw new AppError('INVALID_ADDRESS', `${text} has bits beyond the first 64`);
  }
  return parts.slice(0, 4);
}

/** The same prefix in its one spelling (RFC 5952). */
export function parseIpv6Prefix(prefix: string): string {
  return `${new ipaddr.IPv6([...parseNodePrefix(prefix), 0, 0, 0, 0]).toRFC5952String()}/64`;
}

/** Where an instance lives on a node: node /64, then 3, then the first 44 bits of its hash; a /124 (docs/decisions.md 15). */
export function instanceAddress(nodePrefix: string, hash: string): InstanceAddress {
  const digits = parseItemHash(hash);
  const group = (from: number, to: number) => Number.parseInt(digits.slice(from, to).padEnd(4, '0'), 16);
  const upper = [...parseNodePrefix(nodePrefix), KIND_INSTANCE, group(0, 4), group(4, 8)];
  const last = group(8, 11);
  const at = (offset: number) => new ipaddr.IPv6([...upper, last + offset]).toRFC5952String();
  return { network: `${at(0)}/124`, host: at(0), guest: at(1) };
}

/** Whether an address is the one of this instance on some node. Gateways ask it of every instance. */
export function isInstanceAddress(ipv6: string, hash: string): boolean {
  if (!ipaddr.IPv6.isValid(ipv6) || ipv6.includes('%')) return false;
  const [kind, ...own] = ipaddr.IPv6.parse(ipv6).parts.slice(4);
  const group = (from: number, to: number) => Number.parseInt(hash.slice(from, to).padEnd(4, '0'), 16);
  return (
    kind === KIND_INSTANCE && own[0] === group(0, 4) && own[1] === group(4, 8) && own[2] === group(8, 11) + 1
  );
}
