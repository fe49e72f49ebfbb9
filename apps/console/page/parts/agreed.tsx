import type { Proof } from '../data/prove.ts';
import type { MarkKind } from '../data/trust/mark-kinds.ts';
import type { Agreement, Answered } from '../pure/trust/agree.ts';
import type { JudgedFact } from '../workers/facts.ts';
import { ProofMark, Safe } from './basic.tsx';
import { Fact } from './fact.tsx';

const KINDS: Readonly<Record<Agreement['kind'], MarkKind>> = {
  alone: 'said',
  agree: 'agreed',
  differ: 'wrong',
};

const urls = (count: number) => `${count} more ${count === 1 ? 'URL says' : 'URLs say'} the same`;

/** Where keys are not proven, several URLs may be one node. */
const unprovenOf = ({ uncounted }: Agreement) =>
  uncounted.length === 0 ? '' : `; ${urls(uncounted.length)}, without the proof of a key`;

const labelOf = (agreement: Agreement) => {
  const { kind, nodes, others } = agreement;
  if (kind === 'agree') return `${nodes} nodes agree${unprovenOf(agreement)}`;
  if (kind === 'alone') return `one node's word${unprovenOf(agreement)}`;
  return others.length === 1 ? 'another node differs' : `${others.length} other nodes differ`;
};

/** Whether several nodes say the same. */
export const Agreed = ({ agreement }: { readonly agreement: Agreement | undefined }) =>
  agreement === undefined ? (
    <ProofMark kind="waiting" of="agreement" label="asking other nodes" />
  ) : (
    <span data-agreement={agreement.kind}>
      <ProofMark kind={KINDS[agreement.kind]} of="agreement" label={labelOf(agreement)} />
    </span>
  );

/** Of one of several things that are checked together what was found. */
function nthOf(proof: Proof<readonly JudgedFact[]>, at: number): Proof<JudgedFact> {
  if (proof.kind !== 'proven') return proof;
  const value = proof.value[at];
  return value ? { kind: 'proven', value } : { kind: 'waiting' };
}

/** Each node and what it says. @param props.keys whether its key answers at its URL, in the same order */
export const AnswerLines = ({
  answers,
  keys,
}: {
  readonly answers: readonly Answered[];
  readonly keys: Proof<readonly JudgedFact[]>;
}) => (
  <ul class="lines">
    {answers.map(({ url, said, why }, at) => (
      <li key={url}>
        <ProofMark
          of="agreement"
          kind={
            said === null ? 'waiting' : at === 0 ? 'said' : said === answers[0]?.said ? 'agreed' : 'wrong'
          }
        />
        <span class="grow" data-core-key={url}>
          <Fact proof={nthOf(keys, at)} of="core">
            <Safe text={url} limit={80} />
          </Fact>
        </span>
        <span class="muted">
          <Safe text={said ?? why ?? ''} limit={120} />
        </span>
      </li>
    ))}
  </ul>
);
