import { askGreeting } from '../sync/greeting.ts';
import { readTold, type Told, TRUST_NAMES, type TrustName } from './decide.ts';

/** What a peer trusts, by name; a peer of an older release tells nothing. */
export type PeerTrust = Partial<Readonly<Record<TrustName, Told>>>;

/**
 * Asks a peer whom it trusts, by what it says of itself. Undefined where it does not answer. The node waits for it before
 * it serves for the first time.
 * @param ownAddress of this node: it is not told by itself
 */
export async function askTrust(
  url: string,
  ownAddress: string,
  signal: AbortSignal,
): Promise<PeerTrust | undefined> {
  try {
    return readPeerTrust(url, await askGreeting(url, signal), ownAddress);
  } catch {
    return undefined;
  }
}

/** A node knows its own keys without being told, so it does not list itself: its list and it are what it believes. */
export function readPeerTrust(
  url: string,
  { address, trust }: { readonly address?: unknown; readonly trust?: unknown },
  ownAddress: string,
): PeerTrust | undefined {
  if (typeof trust !== 'object' || trust === null) return undefined;
  const isSelf = address === ownAddress;
  const told = TRUST_NAMES.flatMap((name) => {
    const said = (trust as Record<string, { value?: unknown; source?: unknown } | undefined>)[name];
    const isCore = name === 'known_core_nodes' && Array.isArray(said?.value) && typeof address === 'string';
    const one = readTold(url, name, isCore ? withNode(said as CoreNodes, address as string) : said);
    return one === undefined ? [] : [[name, isSelf ? { ...one, source: 'unset' as const } : one]];
  });
  return Object.fromEntries(told);
}

interface CoreNodes {
  readonly value: readonly unknown[];
  readonly source: unknown;
}

/** A peer vouches for its own keys, also where it knows no other node. */
const withNode = ({ value, source }: CoreNodes, address: string) => ({
  value: [...value, address],
  source: source === 'unset' ? 'peers' : source,
});
