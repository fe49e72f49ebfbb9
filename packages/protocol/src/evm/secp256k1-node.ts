import type { Secp256k1Engine } from './secp256k1-port.ts';
import { pureEngine } from './secp256k1-pure.ts';

interface NativeBindings {
  ecdsaRecover(
    signature: Uint8Array,
    recoveryId: number,
    digest: Uint8Array,
    compressed: boolean,
  ): Uint8Array;
}

/** Loads libsecp256k1 (about twenty times faster). The package's own fallback is avoided: ours is better kept. */
export async function loadNativeEngine(): Promise<Secp256k1Engine | undefined> {
  try {
    // A variable keeps the type checker and browsers' bundlers away from a package that may be absent.
    const specifier = 'secp256k1/bindings.js';
    const { default: bindings } = (await import(specifier)) as { default: NativeBindings };
    return {
      name: 'native',
      recover(digest, rs, recoveryId) {
        try {
          return bindings.ecdsaRecover(rs, recoveryId, digest, false);
        } catch {
          return undefined;
        }
      },
    };
  } catch {
    return undefined;
  }
}

export const engine: Secp256k1Engine = (await loadNativeEngine()) ?? pureEngine;
