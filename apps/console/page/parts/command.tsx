import { useState } from 'preact/hooks';

const SHOWN_MS = 1_500;

/** A command for a shell, with a button that copies it. */
export function Command({ text }: { readonly text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="copy" aria-label={`copy ${text}`} onClick={() => void copy()}>
        {isCopied ? 'copied' : 'copy'}
      </button>
    </span>
  );
}
