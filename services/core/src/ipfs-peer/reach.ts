import type { MultiaddrConnection } from '@libp2p/interface';
import type { Multiaddr } from '@multiformats/multiaddr';
import { clientKeyOf, type MayReach } from '@skerry/kit';
import { PEER_LIMITS } from './limits.ts';

/** The IP address that a multiaddr begins with; undefined where it begins with a name or another network. */
function ipOf(address: Multiaddr): string | undefined {
  const [first] = address.getComponents();
  return first?.name === 'ip4' || first?.name === 'ip6' ? first.value : undefined;
}

/**
 * Who may be called, and who may call. Strangers name addresses in the DHT: only those of the one rule are called, and no
 * names, which could stand for anything by the time they are looked up. What the operator named is called anyway.
 */
export function createGater(
  mayReach: MayReach,
  named: ReadonlySet<string>,
  connections: () => readonly { readonly remoteAddr: Multiaddr }[],
) {
  const mayCall = (address: Multiaddr) => {
    if (named.has(address.toString())) return true;
    const ip = ipOf(address);
    return ip !== undefined && mayReach(ip);
  };
  return {
    denyDialMultiaddr: (address: Multiaddr) => !mayCall(address),
    filterMultiaddrForPeer: (_peer: unknown, address: Multiaddr) => mayCall(address),
    denyInboundConnection({ remoteAddr }: MultiaddrConnection) {
      const ip = ipOf(remoteAddr);
      if (ip === undefined) return true;
      const key = clientKeyOf(ip);
      const same = connections().filter((one) => {
        const other = ipOf(one.remoteAddr);
        return other !== undefined && clientKeyOf(other) === key;
      });
      return same.length >= PEER_LIMITS.connectionsPerAddress;
    },
  };
}
