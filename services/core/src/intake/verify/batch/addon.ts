import { createRequire } from 'node:module';

/** What native/batch.c says of a batch. */
export const VERDICTS = { fails: 0, holds: 1, cannotSay: 2 } as const;

/** @param claims, keys as claims.ts writes them. One of VERDICTS */
export type BatchCheck = (claims: Uint8Array, keys: Uint8Array) => number;

const requireNative = createRequire(import.meta.url);

/** Every thread loads it for itself. Throws where the file is none. */
export const loadBatchCheck = (path: string): BatchCheck =>
  (requireNative(path) as { check: BatchCheck }).check;
