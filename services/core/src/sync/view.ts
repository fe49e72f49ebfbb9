import type { PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';

/** A peer, as this node knows it. */
export interface PeerState {
  readonly link: PeerLink;
  /** `self`: it is this node. `banned`: it sent too much that nobody signed. */
  state: 'new' | 'syncing' | 'synced' | 'failing' | 'banned' | 'self';
  /** How many messages it said to have. */
  messages: number | null;
  /** Messages that came from it since this process began. */
  taken: number;
  /** Messages that it took of what it was offered. */
  given: number;
  /** When a session with it last came to its end, milliseconds since 1970. */
  syncedMs: number | null;
  /** Sessions in a row that failed, and the code of the last failure. */
  failures: number;
  failure: string | null;
}

/**
 * `alone`: there is no peer to be in step with. `syncing`: this node does not have yet what the others have: what it
 * answers may be incomplete. `synced`: it lately had everything that a peer has. `apart`: no peer answers.
 */
export type SyncState = 'alone' | 'syncing' | 'synced' | 'apart';

export interface SyncView {
  readonly node_id: string;
  readonly state: SyncState;
  readonly messages: number;
  /** How many messages the best peer has more; 0 where none has. */
  readonly behind: number;
  readonly peers: PeerView[];
}

interface PeerView {
  readonly name: string;
  readonly state: PeerState['state'];
  readonly messages: number | null;
  readonly taken: number;
  readonly given: number;
  readonly synced_ms: number | null;
  readonly failure: string | null;
  /** What is held against it; from 50 on it is not listened to. */
  readonly points: number;
}

export interface SyncFacts {
  readonly nodeId: string;
  readonly set: NodeSet;
  readonly peers: readonly (PeerState & { readonly points: number })[];
  readonly staleAfterMs: number;
  readonly nowMs: number;
}

function decideState({ set, peers, staleAfterMs, nowMs }: SyncFacts): SyncState {
  if (!set.isReady) return 'syncing';
  const others = peers.filter(({ state }) => state !== 'self');
  if (others.length === 0) return 'alone';
  const isFresh = others.some(({ syncedMs }) => syncedMs !== null && nowMs - syncedMs <= staleAfterMs);
  // A node that is copying from one peer is not whole, whatever another one said before.
  if (others.some(({ state, syncedMs }) => state === 'syncing' && syncedMs === null) && !isFresh)
    return 'syncing';
  if (isFresh) return 'synced';
  return others.some(({ state }) => state === 'new') ? 'syncing' : 'apart';
}

/** Where the node stands, for everybody to read. */
export function describeSync(facts: SyncFacts): SyncView {
  const { set, peers, nodeId } = facts;
  const messages = set.index.size;
  const most = Math.max(0, ...peers.map((peer) => peer.messages ?? 0));
  return {
    node_id: nodeId,
    state: decideState(facts),
    messages,
    behind: Math.max(0, most - messages),
    peers: peers.map(({ link, state, messages: theirs, taken, given, syncedMs, failure, points }) => ({
      name: link.name,
      state,
      messages: theirs,
      taken,
      given,
      synced_ms: syncedMs,
      failure,
      points: Math.round(points),
    })),
  };
}
