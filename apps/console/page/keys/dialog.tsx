import { useEffect, useRef } from 'preact/hooks';
import { type Question, question } from '../data/identity.ts';
import { Facts, ProofMark, Safe } from '../parts/basic.tsx';
import { Json } from '../parts/json.tsx';
import { Price } from '../parts/price.tsx';

const pretty = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

/**
 * Advice: nobody waits for it, and where it comes the rest stays as it is. What it comes in is there before: screen readers tell of
 * changes in it, and not of what is there from its beginning.
 */
const Lack = ({ of: { value } }: { readonly of: Question['lack'] }) => (
  <div role="status">
    {value === null ? null : (
      <p class="stale" data-room="lacking">
        By the scheduler's word, <Safe text={value} limit={600} />.
      </p>
    )}
  </div>
);

/** What only this tab can know before it is signed. */
const Foreseen = ({ about: { itemHash, hostname, cost }, lack }: Question) => (
  <>
    {hostname === null ? null : (
      <p class="foreseen">
        <span class="muted">It will be called</span>
        <b class="hostname">{hostname}</b>
        <ProofMark kind="proven" of="hostname" label="computed in this tab" />
      </p>
    )}
    {cost === null ? null : <Price cost={cost} />}
    <Lack of={lack} />
    {itemHash === null ? null : (
      <p class="foreseen">
        <span class="muted">Its hash</span>
        <code>{itemHash}</code>
      </p>
    )}
  </>
);

const Ask = ({ asked }: { readonly asked: Question }) => {
  const { by, text, about } = asked;
  return (
    <>
      <h2 id="asked-title" tabIndex={-1}>
        <Safe text={about.title} limit={120} />
      </h2>
      {about.isKnown ? null : (
        <p class="stale">The console does not know this form. Do not sign what you did not ask for.</p>
      )}
      <Foreseen {...asked} />
      <Facts
        rows={about.facts.map(([name, value]) => [name, <Safe key={name} text={value} limit={300} />])}
      />
      <details>
        <summary>The text that is signed, byte for byte</summary>
        <Json value={text} />
        {pretty(text) === text ? null : (
          <>
            <p class="muted">The same, laid out:</p>
            <Json value={pretty(text)} />
          </>
        )}
      </details>
      <p class="muted">
        Signed by <code>{by.address}</code>, {by.name}.{' '}
        {by.place === 'wallet' ? 'The wallet will show the text again.' : 'The key stays in this browser.'}
      </p>
      <div class="actions">
        <button type="button" class="primary" onClick={() => asked.settle({ isWanted: true })}>
          Sign
        </button>
        <button type="button" class="plain" onClick={() => asked.settle({ isWanted: false })}>
          Do not sign
        </button>
      </div>
    </>
  );
};

/** Shows what is about to be signed, in words and raw, and what it costs. */
export function SignDialog() {
  const asked = question.value;
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!asked) return;
    // The keyboard goes on from where the reader was.
    const before = document.activeElement;
    if (!box.current?.open) box.current?.showModal();
    // Else the browser scrolls to the first button, past what is to be read first.
    document.getElementById('asked-title')?.focus();
    return () => {
      if (before instanceof HTMLElement && before !== document.body) before.focus();
      // What began it may be disabled until it is done.
      if (document.activeElement === document.body) document.getElementById('main')?.focus();
    };
  }, [asked]);
  if (!asked) return null;
  return (
    <dialog
      ref={box}
      class="sign"
      aria-labelledby="asked-title"
      onCancel={() => asked.settle({ isWanted: false })}
    >
      <Ask asked={asked} />
    </dialog>
  );
}
