import ipaddr from 'ipaddr.js';
import { AppError } from './errors.ts';
import { recoverPersonalSigner } from './evm/personal-sign.ts';
import { parseIpv6Prefix } from './instance-address.ts';
import { LIMITS } from './limits.ts';
import { HASH64_PATTERN } from './network-form/item-hash.ts';
import { createParser } from './schema.ts';
import { NodeProofView } from './views.ts';

/**
 * How a node proves that its key answers at a place: at the URL that it announces, and at one address inside its /64. Whoever
 * wants to know sends a challenge of its own; the node signs a text (EIP-191) that names itself, the place and the challenge.
 * So no proof is of use for another node, another place, or to answer another question.
 */

/** Where the address inside the prefix answers. A port of its own: the node's other ones may be anybody's on its machine. */
export const NODE_PROOF_PORT = 4029;
/** Real proofs have about 300 bytes. */
export const NODE_PROOF_BYTES_MAX = 8 * 1024;

/** No message of any chain begins so. */
const PROOF_DOMAIN = 'net-node-proof';
const CHALLENGE = new RegExp(HASH64_PATTERN);
/** The group after the /64: programs and instances have 1 and 3. */
const KIND_NODE = 0xffff;

/** 32 random bytes of whoever asks, in lower-case hexadecimal. Throws INVALID_PARAMETERS. */
export function parseChallenge(text: string): string {
  if (CHALLENGE.test(text)) return text;
  throw new AppError('INVALID_PARAMETERS', 'challenge is 64 lower-case hexadecimal digits');
}

/**
 * The one spelling of a node's address on the web: only what can be extended by a path, as long as it may be in what is said of the node.
 * Throws INVALID_CONTENT.
 */
export function parseNodeUrl(text: string): string {
  const url = text.length <= LIMITS.urlChars && URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new AppError(
      'INVALID_CONTENT',
      'url must be http or https, without credentials, query or fragment',
    );
  }
  // A letter of a path becomes up to nine characters.
  if (url.href.length > LIMITS.urlChars)
    throw new AppError(
      'INVALID_CONTENT',
      `url must have at most ${LIMITS.urlChars} characters as it is asked for`,
    );
  return url.href.replace(/\/+$/, '');
}

/** The address inside a node's /64 that is the node's own. No instance can have it. Throws INVALID_ADDRESS. */
export function nodeProofAddress(prefix: string): string {
  const [network] = parseIpv6Prefix(prefix).split('/');
  const groups = ipaddr.IPv6.parse(network!).parts.slice(0, 4);
  return new ipaddr.IPv6([...groups, KIND_NODE, 0, 0, 1]).toRFC5952String();
}

/** Where that address is asked. */
export const nodeProofUrl = (prefix: string) => `http://[${nodeProofAddress(prefix)}]:${NODE_PROOF_PORT}`;

export interface NodeProofClaim {
  /** nodeIdOf(the address of the key) */
  readonly nodeId: string;
  /** The URL as `parseNodeUrl` spells it, or the address inside the prefix. */
  readonly place: string;
  readonly challenge: string;
}

/** What is signed. */
export const nodeProofText = ({ nodeId, place, challenge }: NodeProofClaim) =>
  [PROOF_DOMAIN, nodeId, place, challenge].join('\n');

const parseProof = createParser(NodeProofView, 'proof');

/** A proof for a challenge. @param sign EIP-191 */
export function createNodeProof(claim: NodeProofClaim, sign: (text: string) => string): NodeProofView {
  const { nodeId, place, challenge } = claim;
  return { node_id: nodeId, place, challenge, signature: sign(nodeProofText(claim)) };
}

/**
 * Whether what a stranger answered proves the claim for the key of this address. Only the signature counts: what else the
 * answer says is for people.
 * @param body as it came
 */
export function provesNode(body: Uint8Array, claim: NodeProofClaim, address: string): boolean {
  if (body.length > NODE_PROOF_BYTES_MAX) return false;
  try {
    const { signature } = parseProof(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)));
    return recoverPersonalSigner(nodeProofText(claim), signature) === address.toLowerCase();
  } catch {
    return false;
  }
}
