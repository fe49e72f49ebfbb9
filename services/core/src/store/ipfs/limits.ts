import { DIRECTORY_ENTRIES_MAX } from '@skerry/protocol/api/core/ipfs';

/** Bounds of what strangers' CIDs can cost. Units last. */
export const IPFS_LIMITS = {
  /** A block as others send it; kubo makes none above 2 MiB. */
  blockBytes: 4 * 1024 * 1024,
  /** Blocks of one pin. */
  blocks: 400_000,
  /** Links from a root to its farthest block. */
  depth: 128,
  /** Links that wait to be followed while a CAR is sent. */
  links: 50_000,
  /** Blocks of one pin that are fetched at the same time. */
  parallelBlocks: 16,
  /** Requests to a daemon or to gateways at the same time, and how many may wait for a turn. */
  slots: 64,
  waiting: 256,
  slotWaitMs: 2_000,
  /** CIDs that a daemon is asked to let go of at the same time: each holds a connection of the database meanwhile. */
  unpins: 2,
  /** CIDs that would not go, in one round: after so many it is the daemon that fails, and it may take its time to do so. */
  failedUnpins: 5,
  /** Entries of a directory in one answer. */
  entries: DIRECTORY_ENTRIES_MAX,
  pathSegments: 64,
  /** CARs that are sent at the same time, and that wait for it: a client's share, and what is kept for exempt clients. */
  cars: {
    running: { total: 64, reserve: 16, perClient: 8 },
    waiting: { total: 256, reserve: 64, perClient: 16 },
    waitMs: 10_000,
    what: 'CARs that are sent',
    /** Seconds. */
    retryAfter: 10,
  },
  /** Pins under way. */
  parallelPins: 4,
  /** Longest wait between two tries of a pin, as deployed nodes have it. */
  retryMaxSeconds: 300,
  /** An answer of a daemon that is read whole. */
  answerBytes: 8 * 1024 * 1024,
} as const;
