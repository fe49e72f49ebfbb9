import { useEffect, useRef } from 'preact/hooks';
import { messageLink } from '../../data/network.ts';
import { type Explained, explained } from '../../data/trust/explained.ts';
import { MARK_KINDS, MARKS, type MarkKind } from '../../data/trust/mark-kinds.ts';
import { SUBJECTS } from '../../data/trust/subjects.ts';
import { Facts, Hash, Mark, Panel, Safe } from '../../parts/basic.tsx';
import { linkTo } from '../../pure/route.ts';

const KINDS: Readonly<Record<MarkKind, string>> = {
  proven: 'follows from what was signed, or from a hash, computed in this tab',
  agreed: 'several core nodes say the same; one operator may run them all',
  said: 'one node says so, and nothing that was signed shows it',
  waiting: 'is still being checked',
  wrong: 'is not what was signed, or what follows from it',
};

/** What the marks say, and what they do not. */
export const MarksPanel = () => (
  <Panel title="What the marks prove" wide>
    <ul class="lines meanings">
      {MARK_KINDS.map((kind) => (
        <li key={kind}>
          <Mark kind={kind} />
          <span class="grow">{KINDS[kind]}</span>
        </li>
      ))}
    </ul>
    <div class="scroll">
      <table class="rows" aria-label="what is proven, and what is not">
        <thead>
          <tr>
            <th>What</th>
            <th>Follows from</th>
            <th>Not proven</th>
          </tr>
        </thead>
        <tbody>
          {Object.values(SUBJECTS).map(({ what, by, open }) => (
            <tr key={what}>
              <td data-title="What">{what}</td>
              <td data-title="Follows from">{by}</td>
              <td data-title="Not proven">{open}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </Panel>
);

const close = () => {
  explained.value = undefined;
};

function Explanation({ of: mark }: { readonly of: Explained }) {
  const { kind, of, message, why, source } = mark;
  const { what, by, open } = SUBJECTS[of];
  return (
    <>
      <h2 id="explained-title" tabIndex={-1}>
        <Mark kind={kind} label={`${what}: ${MARKS[kind].meaning}`} />
      </h2>
      <p>It {KINDS[kind]}.</p>
      <Facts
        rows={[
          ...(why === undefined ? [] : [['found', <Safe key="why" text={why} limit={300} />] as const]),
          [kind === 'proven' ? 'follows from' : 'would follow from', by],
          ...(message === undefined
            ? []
            : [['bytes', <Hash key="bytes" value={message} href={messageLink(message)} />] as const]),
          // Where services are is a stranger's word.
          ...(source === undefined || !/^https?:/.test(source)
            ? []
            : [
                [
                  'answer',
                  <a key="answer" href={source}>
                    <Safe text={source} limit={200} />
                  </a>,
                ] as const,
              ]),
          ['not proven', open],
        ]}
      />
      <div class="actions">
        <button type="button" class="primary" onClick={close}>
          Close
        </button>
        <a href={linkTo(['trust'])} onClick={close}>
          all that marks prove
        </a>
      </div>
    </>
  );
}

/** What one mark follows from, its bytes, and what it leaves open. */
export function MarkDialog() {
  const mark = explained.value;
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!mark) return;
    const before = document.activeElement;
    if (!box.current?.open) box.current?.showModal();
    document.getElementById('explained-title')?.focus();
    // A link in it leads elsewhere.
    addEventListener('hashchange', close);
    return () => {
      removeEventListener('hashchange', close);
      if (before instanceof HTMLElement) before.focus();
      // A line that went by is gone.
      if (document.activeElement === document.body) document.getElementById('main')?.focus();
    };
  }, [mark]);
  return mark ? (
    <dialog ref={box} class="sign" aria-labelledby="explained-title" onCancel={close}>
      <Explanation of={mark} />
    </dialog>
  ) : null;
}
