import { AppError } from '@skerry/protocol';
import { RpcError } from '../rpc/failures.ts';
import type { Endpoint, RpcPool } from '../rpc/pool.ts';
import { settleSome } from './settle.ts';
import { parseQuantity } from './shape.ts';
import { fetchHeaders } from './source.ts';

/** Which chain an endpoint is of. */
export interface Identity {
  readonly chainId: number;
  /** The hash of its first block. */
  readonly genesis: string;
}

async function askIdentity(endpoint: Endpoint): Promise<Identity> {
  const [id] = await endpoint.ask([{ method: 'eth_chainId', params: [] }]);
  const [first] = await fetchHeaders(endpoint, [0]);
  return { chainId: parseQuantity(id, 'a chain id'), genesis: first!.hash };
}

/**
 * Which chain it is: one that `fits` what is stored by the most of those that say anything, another one by more than half of all
 * endpoints, whoever is silent. It is not waited for those that cannot change that any more. Throws UPSTREAM_UNAVAILABLE where too
 * few say.
 */
export async function identify(
  { endpoints }: Pick<RpcPool, 'endpoints'>,
  fits: (identity: Identity) => boolean,
): Promise<Identity> {
  const votes: { readonly endpoint: Endpoint; readonly identity: Identity }[] = [];
  const ask = async (endpoint: Endpoint) => {
    try {
      votes.push({ endpoint, identity: await askIdentity(endpoint) });
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      endpoint.note(error.failure, 0);
    }
  };
  const isFor = ({ chainId, genesis }: Identity) =>
    votes.filter(({ identity }) => identity.chainId === chainId && identity.genesis === genesis);
  const weightOf = (identity: Identity) => 2 * isFor(identity).length + (fits(identity) ? 1 : 0);
  const isMost = (identity: Identity) => weightOf(identity) > endpoints.length;
  const isDecided = () => votes.some(({ identity }) => isMost(identity));
  await settleSome(endpoints.map(ask), 0, isDecided);
  const [first] = votes
    .filter(({ identity }) => fits(identity) || isMost(identity))
    .toSorted((a, b) => weightOf(b.identity) - weightOf(a.identity));
  if (!first)
    throw new AppError(
      'UPSTREAM_UNAVAILABLE',
      `${votes.length} of ${endpoints.length} RPC endpoints say of which chain it is, none of them what is stored: more than half of all have to say the same`,
    );
  const { identity } = first;
  const inFavour = new Set(isFor(identity));
  for (const vote of votes)
    if (!inFavour.has(vote))
      vote.endpoint.note({ kind: 'lie', reason: 'it is of another chain than other endpoints' }, 0);
  return identity;
}
