import { fileURLToPath } from 'node:url';
import { createSigner, generatePrivateKey, signMessage } from '@skerry/client';
import {
  readPersonalClaim,
  recoverPersonalKey,
  recoverPersonalSigner,
  verifyEnvelope,
} from '@skerry/protocol';
import { personalSignDigest } from '../../packages/protocol/src/evm/personal-digest.ts';
import { loadNativeEngine } from '../../packages/protocol/src/evm/secp256k1-node.ts';
import { pureEngine } from '../../packages/protocol/src/evm/secp256k1-pure.ts';
import { loadSystemEngine } from '../../packages/protocol/src/evm/secp256k1-system.ts';
import { loadBatchCheck, VERDICTS } from '../../services/core/src/intake/verify/batch/addon.ts';
import { buildBatchAddon } from '../../services/core/src/intake/verify/batch/build-addon.ts';
import { type KeyedClaim, packClaims } from '../../services/core/src/intake/verify/batch/claims.ts';
import type { Figures } from '../measure/figures.ts';
import { compare } from '../measure/rounds.ts';

/** As many as go to a thread at once. */
const BATCH = 64;
/** Senders of a batch, and how many checks in batches should take the time of one recovery. */
const BATCH_GOALS: ReadonlyMap<number, number> = new Map([
  [BATCH, 2],
  [1, 3.33],
]);

/**
 * A recovery by a newer library should take 0.7 of the time. Debian 12's (0.2.0) alone takes 0.74 of it, before anything calls it
 * from JavaScript, so that the goal is nine tenths of that.
 */
const SINGLE_GOAL = 0.9 / 0.74;

/** So many signatures of so many senders, with their keys. */
function signBatch(senders: number): KeyedClaim[] {
  const signers = Array.from({ length: senders }, () => createSigner(generatePrivateKey()));
  const keys = signers.map((signer) => recoverPersonalKey(readPersonalClaim('', signer.sign(''))!)!);
  return Array.from({ length: BATCH }, (_, at) => {
    const claim = readPersonalClaim(`${at}`, signers[at % senders]!.sign(`${at}`))!;
    return { claim, key: keys[at % senders]! };
  });
}

async function checkForBench() {
  const built = await buildBatchAddon(
    fileURLToPath(new URL('../../node_modules/.cache/skerry', import.meta.url)),
  );
  if ('missing' in built) throw new Error(`batches cannot be built here: ${built.missing}`);
  return loadBatchCheck(built.path);
}

function expectHeld(verdict: number): void {
  if (verdict !== VERDICTS.holds) throw new Error(`a batch was judged ${verdict}`);
}

/** What checking one message costs, against the bare curve operation that it cannot do without. */
export async function benchVerify(figures: Figures): Promise<void> {
  const native = loadNativeEngine();
  const system = loadSystemEngine();
  if (!system) figures.lack('libsecp256k1 of the system (libsecp256k1-1, or a newer one)');
  if (!native) throw new Error('this platform has no native secp256k1 build; there is nothing to compare');
  const signer = createSigner(generatePrivateKey());
  const content = { type: 'note', content: { text: 'x'.repeat(120) } };
  const body = Buffer.from(signMessage({ type: 'POST', content }, signer).body);
  const { sourceText, signature } = verifyEnvelope(body, Math.floor(Date.now() / 1000));
  const signedText = sourceText!;
  const digest = personalSignDigest(signedText);
  const bytes = Buffer.from(signature.slice(2), 'hex');
  const recoveryId = (bytes[64]! - 27) as 0 | 1;
  const now = Math.floor(Date.now() / 1000);
  const check = await checkForBench();
  compare(figures, `verification of a message of ${body.length} bytes`, [
    {
      name: 'limit: bare libsecp256k1 recovery',
      run: () => native.recover(digest, bytes.subarray(0, 64), recoveryId),
    },
    ...(system
      ? [
          {
            name: 'recovery by the library of the system',
            goal: { of: 'ratio', least: SINGLE_GOAL } as const,
            run: () => system.recover(digest, bytes.subarray(0, 64), recoveryId),
          },
        ]
      : []),
    {
      name: 'signature (hash, recovery, address), native',
      run: () => recoverPersonalSigner(signedText, signature, native),
    },
    ...[BATCH, 8, 1].map((senders) => {
      const { claims, keys } = packClaims(signBatch(senders));
      const least = BATCH_GOALS.get(senders);
      return {
        name: `checked in batches of ${BATCH}, senders: ${senders}`,
        count: BATCH,
        ...(least !== undefined && { goal: { of: 'ratio', least } as const }),
        run: () => expectHeld(check(claims, keys)),
      };
    }),
    { name: 'whole envelope (JSON, schema, hash), native', run: () => verifyEnvelope(body, now) },
    { name: 'signature, pure', run: () => recoverPersonalSigner(signedText, signature, pureEngine) },
  ]);
}
