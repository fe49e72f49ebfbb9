import { useAction } from '../data/action.ts';
import type { SchedulerNode } from '../data/answers.ts';
import { useNetwork } from '../data/network.ts';
import { type Proof, useProof } from '../data/prove.ts';
import { verify } from '../data/workers.ts';
import { Safe } from '../parts/basic.tsx';
import { Fact } from '../parts/fact.tsx';
import type { JudgedFact } from '../workers/facts.ts';

/** Where a compute node is: whether it signed that itself, and, for those who ask, whether its key answers there. */
export function NodePlace({ node }: { readonly node: SchedulerNode }) {
  const { coreUrl } = useNetwork();
  const { node_id: nodeId, address, url, ipv6 } = node;
  const announced = useProof('announced', { coreUrl, nodeId, address, url, ipv6 });
  const asking = useAction((place: string) => verify('nodeKey', { nodeId, address, url: place }));
  const { state } = asking;
  const proof: Proof<JudgedFact> =
    state.kind === 'done'
      ? { kind: 'proven', value: state.value }
      : state.kind === 'failed'
        ? state
        : { kind: 'waiting' };
  return (
    <span class="stack" data-place={announced.kind === 'proven' ? announced.value.kind : 'waiting'}>
      <Fact proof={announced} of="node">
        {url === null ? '–' : <Safe text={url} limit={80} />}
      </Fact>
      {url === null ? null : state.kind === 'idle' ? (
        <span>
          <button type="button" class="plain" onClick={() => asking.run(url)}>
            Ask for its key there
          </button>
        </span>
      ) : (
        <Fact proof={proof} of="node">
          its key
        </Fact>
      )}
    </span>
  );
}
