import { randomBytes } from 'node:crypto';
import { AppError, fieldsOf, type NodeProofClaim, parseNodeUrl } from '@skerry/protocol';
import type { PeerLink } from './link.ts';

/** Whether an answer is signed by this node's own key, for a place and a challenge. */
export type ProvesOwn = (answer: Uint8Array, asked: Pick<NodeProofClaim, 'place' | 'challenge'>) => boolean;

/** The place that an answer names; undefined where it is none. */
function placeIn(answer: Uint8Array): string | undefined {
  try {
    const { place } = fieldsOf(JSON.parse(Buffer.from(answer).toString()));
    return typeof place === 'string' ? place : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Resolves where a peer that says to be this node is. Everybody can read by which id the node knows itself, so it has to prove the key, for
 * the place that it is reached at: whoever passes the challenge on to this node gets a proof for another place.
 * @throws AppError PEER_MISBEHAVED where it does not; INVALID_CONFIG where it leads to this node, which knows that place not as its own;
 * and what the link throws
 */
export async function checkSelf(link: PeerLink, provesOwn: ProvesOwn, signal: AbortSignal): Promise<void> {
  const challenge = randomBytes(32).toString('hex');
  const answer = (await link.askProof?.(challenge, signal)) ?? new Uint8Array();
  const proves = (place: string | undefined) =>
    place !== undefined && provesOwn(answer, { place, challenge });
  if (proves(URL.canParse(link.name) ? parseNodeUrl(link.name) : undefined)) return;
  if (proves(placeIn(answer)))
    throw new AppError(
      'INVALID_CONFIG',
      `the peer ${link.name} leads to this node, which does not know that place as its own: if it is, name it in SKERRY_CORE_URLS; otherwise who is asked there passes everything on`,
    );
  throw new AppError(
    'PEER_MISBEHAVED',
    `the peer ${link.name} says that it is this node, and does not prove it`,
  );
}
