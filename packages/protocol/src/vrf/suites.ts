import { createEcvrf, type Ecvrf, type VrfSuite } from './ecvrf.ts';
import { pureEdwards25519 } from './edwards25519.ts';
import { pureP256 } from './p256.ts';

/** The ciphersuites of RFC 9381 §5.5 that are spoken here. */
export const VRF_SUITES = {
  p256Tai: { id: 0x01, name: 'ECVRF-P256-SHA256-TAI' },
  edwards25519Tai: { id: 0x03, name: 'ECVRF-EDWARDS25519-SHA512-TAI' },
  edwards25519Ell2: {
    id: 0x04,
    name: 'ECVRF-EDWARDS25519-SHA512-ELL2',
    domain: 'ECVRF_edwards25519_XMD:SHA-512_ELL2_NU_\x04',
  },
} as const satisfies Record<string, VrfSuite>;

/** Every ciphersuite on one engine. */
export interface VrfEngine {
  readonly name: 'native' | 'pure';
  /** Undefined for a suite that is not spoken here. */
  find(suiteId: number): Ecvrf | undefined;
}

export function createEngine(name: VrfEngine['name'], all: readonly Ecvrf[]): VrfEngine {
  const byId = new Map(all.map((one) => [one.suite.id, one]));
  return { name, find: (suiteId) => byId.get(suiteId) };
}

/** The engine for browsers, and for machines without a native build. */
export const pureVrfEngine: VrfEngine = createEngine('pure', [
  createEcvrf(VRF_SUITES.p256Tai, pureP256),
  createEcvrf(VRF_SUITES.edwards25519Tai, pureEdwards25519),
  createEcvrf(VRF_SUITES.edwards25519Ell2, pureEdwards25519),
]);
