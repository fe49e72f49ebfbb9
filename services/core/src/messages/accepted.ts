import type { VerifiedMessage } from '@skerry/protocol';
import type { ObservedStatus } from '../instances/fold.ts';
import type { InstanceState } from '../instances/state.ts';

/** What a message must know of the world before it can be decided. */
export interface Needs {
  readonly instanceIds: readonly string[];
  readonly fileHashes: readonly string[];
  /** The latest status that a node published of an instance. */
  readonly observed: readonly { readonly instanceId: string; readonly nodeAddress: string }[];
}

export const NO_NEEDS: Needs = { instanceIds: [], fileHashes: [], observed: [] };

/** The world as of one transaction, earlier messages of the same batch included. */
export interface Facts {
  instance(instanceId: string): InstanceState | undefined;
  hasFile(hash: string): boolean;
  observed(instanceId: string, nodeAddress: string): ObservedStatus | undefined;
  /** Addresses whose allocations count. */
  readonly schedulers: ReadonlySet<string>;
}

/** A blob that is on disk, and what it is. */
export interface UploadedFile {
  readonly hash: string;
  readonly sizeBytes: number;
  readonly contentType: string;
}

export type Change =
  | { readonly kind: 'instance'; readonly state: InstanceState }
  | { readonly kind: 'file'; readonly file: UploadedFile }
  | { readonly kind: 'pin'; readonly fileHash: string };

/** A message that passed everything decidable without I/O. `decide` is pure; it throws AppError to refuse the message. */
export interface Accepted {
  readonly message: VerifiedMessage;
  /** The type of a POST, or null. */
  readonly postType: string | null;
  readonly needs: Needs;
  decide(facts: Facts): readonly Change[];
}

/** One kind of message: reads the content and says what it will need and do. One file each in `kinds/`. */
export type MessageKind = (message: VerifiedMessage) => Accepted;
