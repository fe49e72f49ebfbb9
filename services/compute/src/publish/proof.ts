import type { Signer } from '@skerry/client';
import { ClientTable, clientKeyOf, type HttpServer } from '@skerry/kit';
import { AppError, createNodeProof, NODE_PROOF_PATH, NodeProofView, parseChallenge } from '@skerry/protocol';
import Type from 'typebox';

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
 * `GET /status/proof?challenge=`: that this node's key answers here. What is signed holds this place and no other, whatever
 * the request says, so that a proof that is passed on is worth nothing.
 */
export function addProofRoute(app: HttpServer, source: ProofSource): void {
  const { signer, nodeId, place, now = () => performance.now() } = source;
  const [clients, all] = [new ClientTable(PER_CLIENT_PER_MINUTE), new ClientTable(ALL_PER_MINUTE, 1)];
  app.get(
    NODE_PROOF_PATH,
    {
      schema: {
        summary: "A signature by the node's key over the challenge and this place",
        querystring: Type.Object({ challenge: Type.String({ maxLength: 64 }) }),
        response: { 200: NodeProofView },
      },
    },
    async (request, reply) => {
      const challenge = parseChallenge(request.query.challenge);
      const nowMs = now();
      const client = clients.take(clientKeyOf(request.socket.remoteAddress ?? ''), nowMs);
      const taken = client.isAllowed ? all.take('', nowMs) : client;
      if (!taken.isAllowed) {
        reply.header('retry-after', String(taken.retryAfterSeconds));
        throw new AppError('RATE_LIMITED', `too many proofs; try again in ${taken.retryAfterSeconds} s`);
      }
      reply.header('cache-control', 'no-store');
      return createNodeProof({ nodeId, place: place(), challenge }, (text) => signer.sign(text));
    },
  );
}
