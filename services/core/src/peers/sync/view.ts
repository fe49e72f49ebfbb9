import type { ClockState, NetworkClock } from './clock.ts';
import type { PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';
import type { Patience } from './patience.ts';

/** A peer, as this node knows it. */
export interface PeerState {
  readonly link: PeerLink;
  /** `self`: it is this node. `banned`: it sent too much that nobody signed. */
  state: 'new' | 'syncing' | 'synced' | 'failing' | 'banned' | 'self';
  /** Of its key, as it said; null where it did not. */
  address: string | null;
  /** How many messages it said to have. */
  messages: number | null;
  /** Of those the ones that are ahead of this node's clock, as of the last session. */
  later: number;
  /** Messages that came from it since this process began. */
  taken: number;
  /** Messages that it took of what it was offered. */
  given: number;
  /** When a session with it last came to its end, milliseconds since 1970. */
  syncedMs: number | null;
  /** How long that session took, milliseconds. */
  sessionMs: number;
  /** When the forgotten messages were last compared with it to their end, milliseconds since 1970, and the code of the last failure of that. */
  forgottenMs: number | null;
  forgottenFailure: string | null;
  /** How long it is still waited for. */
  readonly patience: Patience;
  /** Sessions in a row that failed, and the code of the last failure. */
  failures: number;
  failure: string | null;
}

/** One that no session was with. */
export const newPeer = (link: PeerLink, patience: Patience): PeerState => ({
  ...{ link, patience, state: 'new', address: null, messages: null },
  ...{ later: 0, taken: 0, given: 0, syncedMs: null, sessionMs: 0 },
  ...{ forgottenMs: null, forgottenFailure: null, failures: 0, failure: null },
});

/**
 * `alone`: there is no peer to be in step with. `syncing`: this node does not have yet what the others have: what it
 * answers may be incomplete. `synced`: it lately had everything that a peer has and that is not dated ahead of what most
 * clocks say. `apart`: no peer answers, but for those that are not waited for.
 */
export type SyncState = 'alone' | 'syncing' | 'synced' | 'apart';

export interface SyncView {
  readonly node_id: string;
  readonly state: SyncState;
  readonly messages: number;
  readonly forgotten: number;
  /** How many messages the best peer that is waited for has more; 0 where none has. */
  readonly behind: number;
  /** Messages of a peer that are ahead of this node's clock: they are taken when their time comes. */
  readonly later: number;
  readonly clock: ClockView;
  readonly peers: PeerView[];
}

export interface ClockView {
  readonly state: ClockState;
  /** This machine's, milliseconds since 1970. */
  readonly time_ms: number;
  /** What the median of the clocks that were compared has more; null where nothing was. */
  readonly offset_ms: number | null;
  readonly clocks: number;
  /** What this node adds to its machine's clock. */
  readonly correction_ms: number;
}

interface PeerView {
  readonly name: string;
  readonly address: string | null;
  /** `stalled`: it says that it has more, and has brought too little of that for too long to be waited for. */
  readonly state: PeerState['state'] | 'stalled';
  readonly messages: number | null;
  readonly later: number;
  /** What its clock has more than this machine's; null where it did not say. */
  readonly offset_ms: number | null;
  readonly taken: number;
  readonly given: number;
  readonly synced_ms: number | null;
  /** How long its last session that came to its end took. */
  readonly session_ms: number;
  readonly failure: string | null;
  readonly forgotten_ms: number | null;
  /** Of the comparison of what is forgotten alone: messages were compared. */
  readonly forgotten_failure: string | null;
  /** What is held against it; from 50 on it is not listened to. */
  readonly points: number;
}

export interface SyncFacts {
  readonly nodeId: string;
  readonly set: NodeSet;
  readonly clock: NetworkClock;
  readonly peers: readonly (PeerState & { readonly points: number })[];
  readonly staleAfterMs: number;
  readonly nowMs: number;
}

/** What a majority of clocks calls future is nothing that this node lacks. Without one, who knows. */
const isMissing = (later: number, { comparison: { state } }: NetworkClock) =>
  later > 0 && (state === 'unknown' || state === 'unsure');

/**
 * A peer whose sessions take long is in step for as long again: it answers, and each session ends with all that it has. No longer than this: one
 * that is slow, and then silent, is noticed, too.
 */
const SLOW_MAX_MS = 600_000;

/** Whether this node had everything of a peer lately enough to answer for it. */
const isFresh = ({ syncedMs, sessionMs }: PeerState, { nowMs, staleAfterMs }: SyncFacts) =>
  syncedMs !== null && nowMs - syncedMs <= staleAfterMs + Math.min(sessionMs, SLOW_MAX_MS);

function stateOf(peer: PeerState, facts: SyncFacts): PeerView['state'] {
  // One that is frozen answers nothing and refuses nothing: a session with it lasts until it is given up.
  if (peer.state === 'synced' && !isFresh(peer, facts)) return 'failing';
  return peer.state === 'syncing' && peer.patience.isOver ? 'stalled' : peer.state;
}

function decideState(facts: SyncFacts): SyncState {
  const { set, clock, peers } = facts;
  if (!set.isReady) return 'syncing';
  const others = peers.filter(({ state }) => state !== 'self');
  if (others.length === 0) return 'alone';
  const fresh = others.filter((peer) => isFresh(peer, facts));
  const isAnyFresh = fresh.length > 0;
  // A node that is copying from one peer is not whole, whatever another one said before.
  const isCopying = (peer: PeerState) => stateOf(peer, facts) === 'syncing' && peer.syncedMs === null;
  if (others.some(isCopying) && !isAnyFresh) return 'syncing';
  if (isAnyFresh) return fresh.some(({ later }) => isMissing(later, clock)) ? 'syncing' : 'synced';
  return others.some(({ state }) => state === 'new') ? 'syncing' : 'apart';
}

/** Where the node stands, for everybody to read. */
export function describeSync(facts: SyncFacts): SyncView {
  const { set, peers, nodeId, clock } = facts;
  const { state, offsetMs, clocks } = clock.comparison;
  const messages = set.size;
  const awaited = peers.filter(({ patience }) => !patience.isOver);
  const most = Math.max(0, ...awaited.map((peer) => peer.messages ?? 0));
  return {
    node_id: nodeId,
    state: decideState(facts),
    messages,
    forgotten: set.forgotten.size,
    behind: Math.max(0, most - messages),
    later: Math.max(0, ...peers.map((peer) => peer.later)),
    clock: {
      state,
      time_ms: clock.machineNow(),
      offset_ms: offsetMs,
      clocks,
      correction_ms: clock.correctionMs,
    },
    peers: peers.map(({ points, ...peer }) => ({
      name: peer.link.name,
      address: peer.address,
      state: stateOf(peer, facts),
      messages: peer.messages,
      later: peer.later,
      offset_ms: clock.offsetOf(peer.link.name),
      taken: peer.taken,
      given: peer.given,
      synced_ms: peer.syncedMs,
      session_ms: Math.round(peer.sessionMs),
      failure: peer.failure,
      forgotten_ms: peer.forgottenMs,
      forgotten_failure: peer.forgottenFailure,
      points: Math.round(points),
    })),
  };
}
