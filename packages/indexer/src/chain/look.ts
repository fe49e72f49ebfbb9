import { RpcError } from '../rpc/failures.ts';
import type { Endpoint, RpcPool } from '../rpc/pool.ts';
import { settleSome } from './settle.ts';
import type { Header } from './shape.ts';
import { fetchHead } from './source.ts';

/** Who has not answered so many times in a row, or has not shown its head at so many looks, has no say in what is final. */
const SILENT_FAILURES = 4;
/** Once one endpoint has said where the chain ends, how long to wait for the others. */
const GRACE_MIN_MS = 100;
const GRACE_LATENCIES = 4;

/** Where the endpoints say that the chain ends. */
export interface View {
  /** The newest block that any of them shows. */
  readonly head: Header;
  /**
   * Finality is counted from here: a block that at least two of them have reached, where there are two. Undefined while one alone has
   * shown a block and others still may: nothing becomes final by its word.
   */
  readonly agreed: number | undefined;
  /** The last block that at least two of them, where there are two, call final; null where none knows. */
  readonly finalized: number | null;
}

/** The second highest: what a single endpoint claims cannot make anything final. */
export function secondHighest(numbers: readonly number[]): number | undefined {
  const sorted = numbers.toSorted((a, b) => b - a);
  return sorted[Math.min(1, sorted.length - 1)];
}

/** Asks every endpoint that is not resting. Throws UPSTREAM_UNAVAILABLE where none answers. */
export async function lookAtHead(rpc: RpcPool, withFinalized: boolean): Promise<View> {
  const asked = rpc.endpoints.filter((one) => !rpc.isResting(one));
  const heads: Header[] = [];
  const looks = asked.map(async (endpoint) => {
    try {
      heads.push((await fetchHead(endpoint, withFinalized)).head);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      endpoint.silentLooks++;
      endpoint.note(error.failure, 0);
    }
  });
  // Before two have shown where the chain ends, one that is quick would make its own block final.
  const isEnough = () =>
    heads.length > 0 && (rpc.endpoints.filter(({ head }) => head >= 0).length > 1 || !asked.some(isUnheard));
  await settleSome(looks, graceOf(asked), isEnough);
  const head =
    heads.toSorted((a, b) => b.number - a.number)[0] ??
    (await rpc.run((endpoint) => fetchHead(endpoint, withFinalized))).head;
  const counted = rpc.endpoints.filter(hasSay);
  const finals = counted.map((one) => one.finalized).filter((number) => number >= 0);
  const agreed = secondHighest(counted.map((one) => one.head)) ?? head.number;
  return {
    head,
    agreed: agreed < 0 ? undefined : agreed,
    finalized: secondHighest(finals) ?? null,
  };
}

/** One that has shown no block yet counts as well, as the lowest: what it will show may be another chain. */
const hasSay = ({ head, learned, silentLooks }: Endpoint): boolean =>
  learned.failures < SILENT_FAILURES && (head >= 0 || silentLooks < SILENT_FAILURES);

/** It has neither shown a block nor failed yet. */
const isUnheard = ({ head, learned }: Endpoint): boolean => head < 0 && learned.failures === 0;

const graceOf = (endpoints: readonly Endpoint[]): number =>
  Math.max(GRACE_MIN_MS, GRACE_LATENCIES * Math.max(0, ...endpoints.map(({ latencyMs }) => latencyMs)));
