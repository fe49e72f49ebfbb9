import type { AppError, InstanceView } from '@skerry/protocol';

/** An instance that a core node lists in another form than the contract has. */
export interface UnreadableInstance {
  /** Undefined where not even that can be read. */
  readonly instanceId: string | undefined;
  readonly error: AppError;
}

export interface InstanceList {
  readonly instances: InstanceView[];
  /**
   * Left out of the others, which it must not hide: its machine, its route and its place on a node are there all the same, so
   * whoever takes what is not listed for gone needs to know of it.
   */
  readonly unreadable: UnreadableInstance[];
  /** Events after it are not in the list yet. */
  readonly cursor: string;
}
