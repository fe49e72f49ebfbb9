import { IPFS_LIMITS } from './limits.ts';

export interface LetGo {
  /** Of the CIDs that would not go, in their order. */
  readonly failures: readonly unknown[];
  /** The last one that was tried, where so many failed that the rest has to wait. */
  readonly stoppedAt: string | undefined;
}

/** Lets go of CIDs one by one. One that will not go holds up none behind it; `IPFS_LIMITS.failedUnpins` of them end the round. */
export async function letGoOfEach(
  cids: readonly string[],
  letGo: (cid: string) => Promise<void>,
): Promise<LetGo> {
  const failures: unknown[] = [];
  for (const cid of cids) {
    try {
      await letGo(cid);
    } catch (error) {
      failures.push(error);
      if (failures.length === IPFS_LIMITS.failedUnpins) return { failures, stoppedAt: cid };
    }
  }
  return { failures, stoppedAt: undefined };
}
