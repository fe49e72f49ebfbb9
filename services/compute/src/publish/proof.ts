import type { Signer } from '@skerry/client';
import { answer, ClientTable, clientKeyOf, type HttpServer, serveAll } from '@skerry/kit';
import { AppError, createNodeProof, parseChallenge } from '@skerry/protocol';
import { PROOF_API } from '@skerry/protocol/api/compute/node';

/** A scheduler asks some ten times a minute; a signature takes about half a millisecond. */
const PER_CLIENT_PER_MINUTE = 1_200;
const ALL_PER_MINUTE = 30_000;

export interface ProofSource {
  readonly signer: Signer;
  readonly nodeId: string;
  /** The URL or the address that this server proves. */
  readonly place: () => string;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/**
 * Proves that this node's key answers here. What is signed holds this place and no other, whatever the request says, so that
 * a proof that is passed on is worth nothing.
 */
export function addProofRoute(app: HttpServer, source: ProofSource): void {
  const { signer, nodeId, place, now = () => performance.now() } = source;
  const [clients, all] = [new ClientTable(PER_CLIENT_PER_MINUTE), new ClientTable(ALL_PER_MINUTE, 1)];
  serveAll(app, PROOF_API, {
    proveNode({ query, request, reply }) {
      const challenge = parseChallenge(query.challenge);
      const nowMs = now();
      const client = clients.take(clientKeyOf(request.socket.remoteAddress ?? ''), nowMs);
      const taken = client.isAllowed ? all.take('', nowMs) : client;
      if (!taken.isAllowed) {
        reply.header('retry-after', String(taken.retryAfterSeconds));
        throw new AppError('RATE_LIMITED', `too many proofs; try again in ${taken.retryAfterSeconds} s`);
      }
      const proof = createNodeProof({ nodeId, place: place(), challenge }, (text) => signer.sign(text));
      return answer(200, proof, { 'cache-control': 'no-store' });
    },
  });
}
