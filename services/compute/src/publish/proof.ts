import type { Signer } from '@skerry/client';
import { answer, type Client, ClientTable, createClientOf, type HttpServer, serveAll } from '@skerry/kit';
import { AppError, createNodeProof, parseChallenge } from '@skerry/protocol';
import { PROOF_API } from '@skerry/protocol/api/compute/node';

/** A scheduler asks some ten times a minute; a signature takes about half a millisecond. */
const PER_CLIENT_PER_MINUTE = 1_200;
const ALL_PER_MINUTE = 30_000;
/** Beside them, for this network's own services alone: of strangers there may be any number, each of whom asks for little. */
const OWN_PER_MINUTE = 7_500;
/** Of what all may ask for, the part that is left to those who ask for little: nodes whose proofs fail get nothing. */
const LIGHT_PART = 0.25;
/** A client asks for little up to so many a minute: a scheduler that probes each second does. */
const LIGHT_PER_MINUTE = 120;

/**
 * The proofs of a place in a minute, shared so that those who ask for as many as they may leave some to those who ask for few, and all
 * of them leave some to exempt clients. Whoever asks signs nothing, so that nobody is known by a key.
 */
export class ProofBudget {
  readonly #clients = new ClientTable(PER_CLIENT_PER_MINUTE);
  readonly #all = new ClientTable(ALL_PER_MINUTE, 1);
  readonly #own = new ClientTable(OWN_PER_MINUTE, 1);

  /** Throws RATE_LIMITED. @param nowMs milliseconds of a clock that never goes back */
  take({ key, isExempt }: Pick<Client, 'key' | 'isExempt'>, nowMs: number): void {
    const one = this.#clients.take(key, nowMs);
    if (!one.isAllowed)
      throw refusal(`a client gets ${PER_CLIENT_PER_MINUTE} proofs a minute`, one.retryAfterSeconds);
    if (isExempt && this.#own.take('', nowMs).isAllowed) return;
    const isLight = PER_CLIENT_PER_MINUTE - one.remaining <= LIGHT_PER_MINUTE;
    const all = this.#all.take('', nowMs, isLight ? ALL_PER_MINUTE : ALL_PER_MINUTE * (1 - LIGHT_PART));
    if (!all.isAllowed)
      throw refusal(
        `all clients together get ${ALL_PER_MINUTE} proofs a minute, the last quarter those that asked for at most ${LIGHT_PER_MINUTE}`,
        all.retryAfterSeconds,
      );
  }
}

/** Never OVERLOADED: whoever asks takes that for silence (services/scheduler, probe.ts). */
const refusal = (allowed: string, retryAfter: number) =>
  new AppError('RATE_LIMITED', `${allowed}; try again in ${retryAfter} s`, {
    details: { retry_after: retryAfter },
  });

export interface ProofSource {
  readonly signer: Signer;
  readonly nodeId: string;
  /** The URL or the address that this server proves. */
  readonly place: () => string;
  /** Who asks; where left out, who is at the other end of the connection. */
  readonly clientOf?: ReturnType<typeof createClientOf>;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

const DIRECT = createClientOf({ trustedProxies: [], exempt: [] });

/**
 * Proves that this node's key answers here. What is signed holds this place and no other, whatever the request says, so that
 * a proof that is passed on is worth nothing.
 */
export function addProofRoute(app: HttpServer, source: ProofSource): void {
  const { signer, nodeId, place, clientOf = DIRECT, now = () => performance.now() } = source;
  const budget = new ProofBudget();
  serveAll(app, PROOF_API, {
    proveNode({ query, request }) {
      const challenge = parseChallenge(query.challenge);
      budget.take(clientOf(request), now());
      const proof = createNodeProof({ nodeId, place: place(), challenge }, (text) => signer.sign(text));
      return answer(200, proof, { 'cache-control': 'no-store' });
    },
  });
}
