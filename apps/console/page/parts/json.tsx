import { Safe } from './basic.tsx';

/** More is not laid out: it would freeze the page. */
const CHARS_MAX = 20_000;

/** A value as JSON. */
export function Json({ value }: { readonly value: unknown }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached with the keyboard
    <pre tabIndex={0}>
      <Safe text={text} limit={CHARS_MAX} keepsLines />
    </pre>
  );
}
