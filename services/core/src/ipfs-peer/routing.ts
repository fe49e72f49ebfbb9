import type { Provider } from '@helia/bitswap';
import type { Libp2p, PeerId } from '@libp2p/interface';
import { peerIdFromString } from '@libp2p/peer-id';
import { type Multiaddr, multiaddr } from '@multiformats/multiaddr';
import { pause } from '@skerry/kit';
import type { CID } from 'multiformats/cid';
import { readUpTo } from '../store/ipfs/gateways.ts';
import { PEER_LIMITS } from './limits.ts';

/** A peer that says that it has a CID. */
export interface FoundPeer {
  readonly id: string;
  readonly addresses: readonly string[];
}

const ADDRESSES_PER_PEER = 16;
const TEXT_CHARS = 256;

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= TEXT_CHARS;

/** What a delegated router answers (IPFS specifications, "Delegated Routing V1"): anything may stand in it. */
export function readProviders(body: string): FoundPeer[] {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    return [];
  }
  const listed = (answer as { Providers?: unknown } | null)?.Providers;
  if (!Array.isArray(listed)) return [];
  return listed
    .slice(0, PEER_LIMITS.providers)
    .map((one: { ID?: unknown; Addrs?: unknown } | null) => ({ id: one?.ID, addresses: one?.Addrs }))
    .filter(({ id }) => isText(id))
    .map(({ id, addresses }) => ({
      id: id as string,
      addresses: Array.isArray(addresses) ? addresses.filter(isText).slice(0, ADDRESSES_PER_PEER) : [],
    }));
}

async function askRouter(url: string, cid: CID, signal: AbortSignal): Promise<FoundPeer[]> {
  try {
    const response = await fetch(`${url.replace(/\/+$/, '')}/routing/v1/providers/${cid.toV1()}`, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal,
    });
    if (!response.ok) {
      await response.body?.cancel();
      return [];
    }
    const body = await readUpTo(response, PEER_LIMITS.routerBytes);
    return body ? readProviders(body.toString()) : [];
  } catch {
    return [];
  }
}

function parsePeer({ id, addresses }: FoundPeer): { peer: PeerId; multiaddrs: Multiaddr[] } | undefined {
  try {
    return { peer: peerIdFromString(id), multiaddrs: addresses.map((text) => multiaddr(text)) };
  } catch {
    return undefined;
  }
}

const NEVER = new AbortController().signal;

/** Who has a CID: by delegated routers, then by the DHT. Peers that are connected are asked by Bitswap itself, and first. */
export function createRouting(libp2p: () => Libp2p, routers: readonly string[]) {
  async function* found(cid: CID, signal: AbortSignal) {
    for (const router of routers) {
      for (const one of await askRouter(router, cid, signal)) {
        const parsed = parsePeer(one);
        if (parsed) yield parsed;
      }
    }
    for await (const { id: peer, multiaddrs } of libp2p().contentRouting.findProviders(cid, { signal }))
      yield { peer, multiaddrs };
  }
  return {
    async *findProviders(
      cid: CID,
      { signal = NEVER }: { signal?: AbortSignal } = {},
    ): AsyncGenerator<Provider> {
      if (libp2p().getPeers().length > 0) await pause(PEER_LIMITS.knownPeersMs, signal);
      signal.throwIfAborted();
      for await (const { peer, multiaddrs } of found(cid, signal)) {
        if (peer.equals(libp2p().peerId) || multiaddrs.length === 0) continue;
        await libp2p().peerStore.merge(peer, { multiaddrs });
        yield { id: peer.toCID(), multiaddrs, router: 'skerry' };
      }
    },
  };
}
