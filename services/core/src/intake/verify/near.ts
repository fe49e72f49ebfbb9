import type { VerifiedMessage } from '@skerry/protocol';
import { inlineVerifier, type Verifier } from './verifier.ts';

/** A larger body is for the threads, since this one answers requests. */
const NEAR_BYTES_MAX = 16 * 1024;
/** How much of this thread's time goes into verifying, at most. */
const NEAR_SHARE = 1 / 10;
/** What it did not use of its share it may use later, up to so much: a few bodies that come together. */
const NEAR_SAVED_MS = 1;

type Verify = (body: Uint8Array, nowSeconds: number, from?: string) => Promise<VerifiedMessage>;

/**
 * Verifies a small body that comes alone where it is read: giving it to another thread and taking it back costs more than
 * its signature. While the threads have bodies, or this one had its share, bodies gather there, and are cheaper together.
 * @param threads where the others are verified; disposed of with this
 */
export function verifyNear(threads: Verifier, now: () => number = () => performance.now()): Verifier {
  let away = 0;
  let savedMs = NEAR_SAVED_MS;
  let sinceMs = now();
  let isClosed = false;
  const near = (verify: Verify, onThreads: Verify): Verify => {
    const giveAway: Verify = async (...one) => {
      away++;
      try {
        return await onThreads(...one);
      } finally {
        away--;
      }
    };
    return (body, ...rest) => {
      const startMs = now();
      savedMs = Math.min(NEAR_SAVED_MS, savedMs + (startMs - sinceMs) * NEAR_SHARE);
      sinceMs = startMs;
      if (isClosed || away > 0 || body.length > NEAR_BYTES_MAX || savedMs <= 0)
        return giveAway(body, ...rest);
      const verified = verify(body, ...rest);
      savedMs -= now() - startMs;
      return verified;
    };
  };
  return {
    verify: near(inlineVerifier.verify, (...one) => threads.verify(...one)),
    verifyShared: near(inlineVerifier.verifyShared, (...one) => threads.verifyShared(...one)),
    verifyAll: (...frames) => threads.verifyAll(...frames),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await threads[Symbol.asyncDispose]();
    },
  };
}
