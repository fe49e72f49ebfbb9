const ADDRESS_CHARS_MAX = 256;
const MULTIADDR = /^\/(ip4|ip6|dns|dns4|dns6)\/[^/\s]+\/tcp\/[0-9]{1,5}\/p2p\/[A-Za-z0-9]+$/;

/** Whether it is an address of a form at which a node can be called. */
export const isNodeMultiaddr = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= ADDRESS_CHARS_MAX && MULTIADDR.test(value);
