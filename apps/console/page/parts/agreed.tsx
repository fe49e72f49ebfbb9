import type { Agreement, Answered } from '../pure/agree.ts';
import { linkTo } from '../pure/route.ts';
import { Mark, type MarkKind, Safe } from './basic.tsx';

const KINDS: Readonly<Record<Agreement['kind'], MarkKind>> = {
  alone: 'said',
  agree: 'agreed',
  differ: 'wrong',
};

const labelOf = ({ kind, same, others }: Agreement) =>
  kind === 'agree'
    ? `${same.length + 1} nodes agree`
    : kind === 'differ'
      ? `${others.length} of ${same.length + others.length + 1} nodes differ`
      : "one node's word";

/** Whether several nodes say the same. */
export const Agreed = ({ agreement }: { readonly agreement: Agreement | undefined }) =>
  agreement === undefined ? (
    <Mark kind="waiting" label="asking other nodes" />
  ) : (
    <a href={linkTo(['trust'])} data-agreement={agreement.kind}>
      <Mark kind={KINDS[agreement.kind]} label={labelOf(agreement)} />
    </a>
  );

/** Each node and what it says. */
export const AnswerLines = ({ answers }: { readonly answers: readonly Answered[] }) => (
  <ul class="lines">
    {answers.map(({ url, said, why }, at) => (
      <li key={url}>
        <Mark
          kind={
            said === null ? 'waiting' : at === 0 ? 'said' : said === answers[0]?.said ? 'agreed' : 'wrong'
          }
        />
        <span class="grow">
          <Safe text={url} limit={80} />
        </span>
        <span class="muted">
          <Safe text={said ?? why ?? ''} limit={120} />
        </span>
      </li>
    ))}
  </ul>
);
