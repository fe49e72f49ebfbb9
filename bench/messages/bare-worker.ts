import { parentPort, workerData } from 'node:worker_threads';
import { readPersonalClaim, recoverPersonalKey, sha256Hex } from '@skerry/protocol';
import { loadBatchCheck, VERDICTS } from '../../services/core/src/intake/verify/batch/addon.ts';
import { type KeyedClaim, packClaims } from '../../services/core/src/intake/verify/batch/claims.ts';
import type { Task } from '../../services/core/src/intake/verify/verifier.ts';

/** What the thread of a bare program is told: the addon that checks signatures in batches. Without it each is recovered. */
export interface BareWorker {
  readonly addon: string | undefined;
}

/** Of an envelope. */
interface Body {
  readonly message: unknown;
  readonly signature: string;
  readonly address: string;
}

const { addon } = workerData as BareWorker;
const check = addon === undefined ? undefined : loadBatchCheck(addon);
const known = new Map<string, Uint8Array>();

function claimOf(body: Buffer): KeyedClaim {
  const { message, signature, address } = JSON.parse(body.toString()) as Body;
  const text = JSON.stringify(message);
  // What a message is known by.
  sha256Hex(text);
  const claim = readPersonalClaim(text, signature)!;
  const key = (check && known.get(address)) ?? recoverPersonalKey(claim)!;
  known.set(address, key);
  return { claim, key };
}

/** Hash and signature of each body, and nothing else: neither its form nor its sender is looked at. */
parentPort!.on('message', ({ packed, lengths }: Pick<Task, 'packed' | 'lengths'>) => {
  let end = 0;
  const keyed = lengths.map((length) => {
    end += length;
    return claimOf(Buffer.from(packed.buffer, end - length, length));
  });
  const { claims, keys } = packClaims(keyed);
  if (check && check(claims, keys) !== VERDICTS.holds) throw new Error('a batch does not hold');
  parentPort!.postMessage('done');
});
