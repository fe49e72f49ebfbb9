import { isIPv4, isIPv6 } from 'node:net';

const ADDRESS_CHARS_MAX = 256;
const PORT_MAX = 65_535;
const MULTIADDR = /^\/(ip4|ip6|dns|dns4|dns6)\/([^/\s]+)\/tcp\/([0-9]{1,5})\/p2p\/[A-Za-z0-9]+$/;
/** Makes a node's address of a place, whoever is there. */
const SOMEBODY = '/p2p/somebody';

/** Whether it is an address of a form at which a node can be called. */
export function isNodeMultiaddr(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > ADDRESS_CHARS_MAX) return false;
  const [, protocol, host = '', port] = MULTIADDR.exec(value) ?? [];
  if (protocol === 'ip4' && !isIPv4(host)) return false;
  if (protocol === 'ip6' && !isIPv6(host)) return false;
  return protocol !== undefined && Number(port) <= PORT_MAX;
}

/** Who is at a node's address. */
export const peerOf = (address: string): string => address.split('/p2p/').at(-1)!;

/** A place at which a node can be called, without who it is. Throws. */
export function parsePlace(text: string): string {
  if (!isNodeMultiaddr(`${text}${SOMEBODY}`))
    throw new Error('expected a multiaddr such as /dns4/HOST/tcp/PORT');
  return text;
}

/** Where a host and a port are; "::" is every address of both kinds, since a listener of libp2p has one kind. */
export function placesOf(host: string, port: number): string[] {
  const address = host === 'localhost' ? '127.0.0.1' : host;
  if (address === '::') return [`/ip4/0.0.0.0/tcp/${port}`, `/ip6/::/tcp/${port}`];
  if (isIPv6(address)) return [`/ip6/${address}/tcp/${port}`];
  return [isIPv4(address) ? `/ip4/${address}/tcp/${port}` : `/dns4/${address}/tcp/${port}`];
}
