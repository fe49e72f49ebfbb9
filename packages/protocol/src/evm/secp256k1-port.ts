/** An engine that recovers a public key from an ECDSA signature over secp256k1 (SEC 1 §4.1.6). Adapters: the system's library, npm's (native), and pure. */
export interface Secp256k1Engine {
  readonly name: 'system' | 'native' | 'pure';
  /**
   * @param digest 32 bytes
   * @param rs 64 bytes, r then s, each already known to be in [1, n-1]
   * @param recoveryId 0 or 1
   * @returns the uncompressed public key, 65 bytes, or undefined where no key fits
   */
  recover(digest: Uint8Array, rs: Uint8Array, recoveryId: 0 | 1): Uint8Array | undefined;
}
