import { useNetwork } from '../data/network.ts';
import { useProof } from '../data/prove.ts';
import { Fact } from '../parts/fact.tsx';
import { score } from '../pure/format.ts';

interface SignedScoreProps {
  readonly nodeId: string;
  readonly total: number;
  /** The message of the scores. */
  readonly scores: string;
}

/** A score, and whether a monitor signed it. */
export function SignedScore({ nodeId, total, scores }: SignedScoreProps) {
  const { coreUrl, info } = useNetwork();
  const publishers = info?.trust.scoring_publishers.value ?? [];
  const proof = useProof('score', info && { coreUrl, scores, nodeId, score: total, publishers });
  return (
    <Fact proof={proof} of="score">
      {score(total)}
    </Fact>
  );
}
