import { bytesToHex, OWNER_HEADERS, type SignedPart } from '@skerry/protocol';
import type { Signer } from './signer.ts';

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const LIFE_MS = 3_600_000;

const hexOf = (text: string) => bytesToHex(new TextEncoder().encode(text));

/** An owner's key of the moment for one compute node: made and signed once, good for an hour. */
export class OwnerPass {
  readonly #domain: string;
  readonly #key: CryptoKey;
  readonly #publicKey: SignedPart;

  private constructor(domain: string, key: CryptoKey, publicKey: SignedPart) {
    this.#domain = domain;
    this.#key = key;
    this.#publicKey = publicKey;
  }

  /** @param domain the node's DOMAIN_NAME, as its /status/config says */
  static async create(signer: Signer, domain: string, nowMs = Date.now()): Promise<OwnerPass> {
    const pair = await crypto.subtle.generateKey(ECDSA, true, ['sign']);
    const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey);
    const text = JSON.stringify({
      pubkey: { kty, crv, x, y },
      alg: 'ECDSA',
      domain,
      address: signer.address,
      chain: signer.chain,
      expires: new Date(nowMs + LIFE_MS).toISOString(),
    });
    return new OwnerPass(domain, pair.privateKey, { payload: hexOf(text), signature: signer.sign(text) });
  }

  /** Both parts, for the first frame of a WebSocket. @param path without the query */
  async sign(method: string, path: string, nowMs = Date.now()): Promise<Record<string, SignedPart>> {
    const text = JSON.stringify({ time: new Date(nowMs).toISOString(), method, path, domain: this.#domain });
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
    const signature = await crypto.subtle.sign(algorithm, this.#key, new TextEncoder().encode(text));
    return {
      'X-SignedPubKey': this.#publicKey,
      'X-SignedOperation': { payload: hexOf(text), signature: bytesToHex(new Uint8Array(signature)) },
    };
  }

  /** The same as headers of a request. */
  async headers(method: string, path: string, nowMs?: number): Promise<Record<string, string>> {
    const parts = await this.sign(method, path, nowMs);
    return {
      [OWNER_HEADERS.publicKey]: JSON.stringify(parts['X-SignedPubKey']),
      [OWNER_HEADERS.operation]: JSON.stringify(parts['X-SignedOperation']),
    };
  }
}
