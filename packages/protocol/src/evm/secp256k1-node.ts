import type { Secp256k1Engine } from './secp256k1-port.ts';
import { pureEngine } from './secp256k1-pure.ts';
import { loadSystemEngine } from './secp256k1-system.ts';

interface NativeBindings {
  ecdsaRecover(
    signature: Uint8Array,
    recoveryId: number,
    digest: Uint8Array,
    compressed: boolean,
  ): Uint8Array;
}

/** Loads npm's libsecp256k1 (about twenty times faster). The package's own fallback is avoided: ours is better kept. */
export function loadNativeEngine(): Secp256k1Engine | undefined {
  try {
    const { createRequire } = process.getBuiltinModule('node:module');
    const bindings = createRequire(import.meta.url)('secp256k1/bindings.js') as NativeBindings;
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

let chosen: Secp256k1Engine | undefined;
const choose = (): Secp256k1Engine => {
  chosen ??= loadSystemEngine() ?? loadNativeEngine() ?? pureEngine;
  return chosen;
};

/** Loaded with the first signature that is checked: most commands check none. */
export const engine: Secp256k1Engine = {
  get name() {
    return choose().name;
  },
  recover: (digest, rs, recoveryId) => choose().recover(digest, rs, recoveryId),
};
