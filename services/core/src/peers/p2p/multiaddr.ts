import { isIPv4, isIPv6 } from 'node:net';

const ADDRESS_CHARS_MAX = 256;
const PORT_MAX = 65_535;
const MULTIADDR = /^\/(ip4|ip6|dns|dns4|dns6)\/([^/\s]+)\/tcp\/([0-9]{1,5})\/p2p\/[A-Za-z0-9]+$/;

/** Whether it is an address of a form at which a node can be called. */
export function isNodeMultiaddr(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > ADDRESS_CHARS_MAX) return false;
  const [, protocol, host = '', port] = MULTIADDR.exec(value) ?? [];
  if (protocol === 'ip4' && !isIPv4(host)) return false;
  if (protocol === 'ip6' && !isIPv6(host)) return false;
  return protocol !== undefined && Number(port) <= PORT_MAX;
}
