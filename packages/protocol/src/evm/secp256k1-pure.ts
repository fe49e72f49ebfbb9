import { secp256k1 } from '@noble/curves/secp256k1.js';
import type { Secp256k1Engine } from './secp256k1-port.ts';

/** The engine for browsers, and for platforms without a native build. */
export const pureEngine: Secp256k1Engine = {
  name: 'pure',
  recover(digest, rs, recoveryId) {
    try {
      const signature = secp256k1.Signature.fromBytes(rs, 'compact').addRecoveryBit(recoveryId);
      return signature.recoverPublicKey(digest).toBytes(false);
    } catch {
      return undefined;
    }
  },
};

export const engine = pureEngine;
