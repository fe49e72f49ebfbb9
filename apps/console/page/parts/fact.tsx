import type { ComponentChildren } from 'preact';
import { messageLink } from '../data/network.ts';
import type { Proof } from '../data/prove.ts';
import type { Subject } from '../data/trust/subjects.ts';
import type { JudgedFact } from '../workers/facts.ts';
import { ProofMark, Safe } from './basic.tsx';

/** What the core node says, with what was found about it. */
export function Fact(props: {
  readonly proof: Proof<JudgedFact>;
  readonly of: Subject;
  readonly children: ComponentChildren;
}) {
  const { proof, of, children } = props;
  const found = proof.kind === 'proven' ? proof.value : undefined;
  const why = found?.why ?? (proof.kind === 'failed' ? proof.failure.message : undefined);
  return (
    <span class="stack">
      <span>
        <ProofMark
          kind={found?.kind ?? (proof.kind === 'waiting' ? 'waiting' : 'said')}
          {...{ of, why, message: found?.itemHash ?? undefined }}
        />{' '}
        {children}
      </span>
      {why === undefined ? null : (
        <span class={found?.kind === 'wrong' ? 'wrong' : 'muted'}>
          {found?.itemHash ? (
            <a href={messageLink(found.itemHash)}>
              <Safe text={why} limit={300} />
            </a>
          ) : (
            <Safe text={why} limit={300} />
          )}
        </span>
      )}
    </span>
  );
}
