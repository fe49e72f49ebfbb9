/** What the gossip thread and the node tell each other. */

export interface GossipSettings {
  /** 32 bytes that the identity follows from. */
  readonly seed: Uint8Array;
  /** Multiaddrs to listen at. */
  readonly listen: readonly string[];
  /** Multiaddrs that others are told in place of those; none where they are told those. */
  readonly announce: readonly string[];
  readonly topic: string;
}

export type ToThread =
  /** A message that this node accepted. */
  | { readonly kind: 'publish'; readonly data: Uint8Array }
  /** What a message was worth that the thread asked about. */
  | { readonly kind: 'validated'; readonly id: number; readonly validation: GossipValidation }
  /** Where other nodes are, and who is not to be spoken with at present. */
  | { readonly kind: 'peers'; readonly addresses: readonly string[]; readonly banned: readonly string[] };

export type FromThread =
  | { readonly kind: 'ready'; readonly addresses: readonly string[] }
  | { readonly kind: 'published' }
  | { readonly kind: 'received'; readonly id: number; readonly peer: string; readonly data: Uint8Array }
  | { readonly kind: 'connected'; readonly peer: string; readonly connected: number }
  | { readonly kind: 'disconnected'; readonly peer: string; readonly connected: number };

/** `ignore`: no fault of the sender, and not passed on. */
export type GossipValidation = 'accept' | 'ignore' | 'reject';

/** Larger messages reach others by reconciliation (deployed nodes take 262,144 bytes, too). */
export const GOSSIP_BYTES_MAX = 256 * 1024;
/** Messages that are being verified, and those on their way out. What is beyond is left to reconciliation. */
export const VALIDATED_AT_ONCE = 1_000;
export const PUBLISHED_AT_ONCE = 2_000;
