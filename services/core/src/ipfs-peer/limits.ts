/** Bounds of what peers of IPFS can cost. Units last. */
export const PEER_LIMITS = {
  /** Larger blocks are sent to nobody: Bitswap's own bound. */
  blockBytes: 2 * 1024 * 1024,
  /** Connections from one address, or one IPv6 /64. */
  connectionsPerAddress: 8,
  pendingConnections: 20,
  /** Blocks that a peer may wait for; more push out older ones. */
  wants: 64,
  streams: 32,
  messageBytes: 4 * 1024 * 1024,
  messageMs: 10_000,
  /** Reads from the core node at the same time, and how long one may take. */
  reads: 16,
  readsWaiting: 1_024,
  readMs: 5_000,
  /** Blocks that are looked for at the same time for the core node. */
  searches: 64,
  searchesWaiting: 256,
  /** Of blocks that were found, and may be asked for again. */
  recentBytes: 64 * 1024 * 1024,
  /** Providers that one search calls. */
  providers: 8,
  /** An answer of a delegated router. */
  routerBytes: 256 * 1024,
  /** Peers that were met and are asked first are waited for so long before others are searched for. */
  knownPeersMs: 300,
  /** CIDs that are announced. */
  announced: 100_000,
  announceMs: 60_000,
  /** Messages in one page of the core node. */
  page: 200,
} as const;
