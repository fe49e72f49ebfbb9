import { bytesToHex, OWNER_HEADERS, type SignedPart } from '@skerry/protocol';
import type { AskedSigner } from './signer.ts';

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const LIFE_MS = 3_600_000;

/** By which names a node knows itself, as its `/status/config` says (`DOMAIN_NAME`, `node_hash`). */
export interface NodeNames {
  readonly domain: string;
  /** undefined for a gateway. */
  readonly nodeId?: string | undefined;
}

/** What is asked for. */
export interface OperationToSign {
  readonly method: string;
  /** With its query, if it has one. */
  readonly path: string;
  /** The SHA-256 of the body, 64 hexadecimal digits; undefined where there is none. */
  readonly bodySha256?: string | undefined;
}

const hexOf = (text: string) => bytesToHex(new TextEncoder().encode(text));

/** An owner's key of the moment for one compute node: made and signed once, good for an hour. */
export class OwnerPass {
  readonly #domain: string;
  readonly #node: string | undefined;
  readonly #key: CryptoKey;
  readonly #publicKey: SignedPart;

  private constructor(node: NodeNames, key: CryptoKey, publicKey: SignedPart) {
    this.#domain = node.domain;
    this.#node = node.nodeId;
    this.#key = key;
    this.#publicKey = publicKey;
  }

  static async create(signer: AskedSigner, node: NodeNames, nowMs = Date.now()): Promise<OwnerPass> {
    // Only its public half can be exported.
    const pair = await crypto.subtle.generateKey(ECDSA, false, ['sign']);
    const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey);
    const text = JSON.stringify({
      pubkey: { kty, crv, x, y },
      alg: 'ECDSA',
      domain: node.domain,
      address: signer.address,
      chain: signer.chain,
      expires: new Date(nowMs + LIFE_MS).toISOString(),
    });
    const signature = await signer.sign(text);
    return new OwnerPass(node, pair.privateKey, { payload: hexOf(text), signature });
  }

  /** Both parts, for the first frame of a WebSocket. */
  async sign(
    { method, path, bodySha256 }: OperationToSign,
    nowMs = Date.now(),
  ): Promise<Record<string, SignedPart>> {
    const mark = path.indexOf('?');
    const [bare, query] = mark < 0 ? [path] : [path.slice(0, mark), path.slice(mark + 1)];
    const text = JSON.stringify({
      ...{ time: new Date(nowMs).toISOString(), method, path: bare, domain: this.#domain },
      ...{ node: this.#node, query, body_sha256: bodySha256 },
    });
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
    const signature = await crypto.subtle.sign(algorithm, this.#key, new TextEncoder().encode(text));
    return {
      'X-SignedPubKey': this.#publicKey,
      'X-SignedOperation': { payload: hexOf(text), signature: bytesToHex(new Uint8Array(signature)) },
    };
  }

  /** The same as headers of a request. */
  async headers(operation: OperationToSign, nowMs?: number): Promise<Record<string, string>> {
    const parts = await this.sign(operation, nowMs);
    return {
      [OWNER_HEADERS.publicKey]: JSON.stringify(parts['X-SignedPubKey']),
      [OWNER_HEADERS.operation]: JSON.stringify(parts['X-SignedOperation']),
    };
  }
}
