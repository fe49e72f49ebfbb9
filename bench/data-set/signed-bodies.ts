import { createRequire } from 'node:module';
import { evmAddressOf, personalSignDigest } from '@skerry/protocol';

/** Signs as fast as libsecp256k1 can: benches need tens of thousands of signed messages. */
const { ecdsaSign, publicKeyCreate } = createRequire(import.meta.url)('secp256k1') as {
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { signature: Uint8Array; recid: number };
  publicKeyCreate(key: Uint8Array, compressed: boolean): Uint8Array;
};

interface BenchSigner {
  readonly address: string;
  sign(text: string): string;
}

/** A key that follows from a number: anybody may know it. */
function createBenchSigner(number: number): BenchSigner {
  const key = new Uint8Array(32).fill(7);
  new DataView(key.buffer).setUint32(28, number + 1);
  return {
    address: evmAddressOf(publicKeyCreate(key, false)),
    sign(text) {
      const { signature, recid } = ecdsaSign(personalSignDigest(text), key);
      return `0x${Buffer.from(signature).toString('hex')}${(27 + recid).toString(16)}`;
    },
  };
}

/** Dated within so many seconds, so that none comes late (LIMITS.lateSeconds). */
const SPREAD_SECONDS = 200;

/** Posts of some senders and channels, of the size of everyday messages; each body differs from every other. */
export function createBodies(count: number, run: string, senders = 50): Buffer[] {
  const startSeconds = Math.floor(Date.now() / 1000) - SPREAD_SECONDS;
  const signers = Array.from({ length: senders }, (_, index) => createBenchSigner(index));
  return Array.from({ length: count }, (_, n) => {
    const { address, sign } = signers[n % senders]!;
    const text = JSON.stringify({
      chain: 'ETH',
      channel: `bench-${n % 7}`,
      type: 'POST',
      timestamp: startSeconds + (Math.floor(n / 10) % SPREAD_SECONDS),
      nonce: `${run}-${n}`,
      content: {
        type: 'note',
        content: { text: 'x'.repeat(120), n },
        ...(n % 4 === 0 ? { tags: ['bench'] } : {}),
      },
    });
    return Buffer.from(`{"message":${text},"signature":"${sign(text)}","address":"${address}"}`);
  });
}
