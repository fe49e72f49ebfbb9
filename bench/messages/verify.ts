import { createSigner, generatePrivateKey, signMessage } from '@skerry/client';
import { recoverPersonalSigner, verifyEnvelope } from '@skerry/protocol';
import { personalSignDigest } from '../../packages/protocol/src/evm/personal-digest.ts';
import { loadNativeEngine } from '../../packages/protocol/src/evm/secp256k1-node.ts';
import { pureEngine } from '../../packages/protocol/src/evm/secp256k1-pure.ts';
import { compare } from '../measure/rounds.ts';

/** What checking one message costs, against the bare curve operation that it cannot do without. */
export async function benchVerify(): Promise<void> {
  const native = await loadNativeEngine();
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
  compare(`verification of a message of ${body.length} bytes`, [
    {
      name: 'limit: bare libsecp256k1 recovery',
      run: () => native.recover(digest, bytes.subarray(0, 64), recoveryId),
    },
    {
      name: 'signature (hash, recovery, address), native',
      run: () => recoverPersonalSigner(signedText, signature, native),
    },
    { name: 'whole envelope (JSON, schema, hash), native', run: () => verifyEnvelope(body, now) },
    { name: 'signature, pure', run: () => recoverPersonalSigner(signedText, signature, pureEngine) },
  ]);
}
