import { useState } from 'preact/hooks';

/** By form, while the tab is open. */
const drafts = new Map<string, unknown>();

export interface Draft<T> {
  readonly form: T;
  readonly edit: (change: Partial<T>) => void;
  /** Once it is sent: the next one begins anew. */
  readonly drop: () => void;
}

/** What is typed into a form, also after the way to a key and back, which leads away from it. */
export function useDraft<T extends object>(name: string, first: T): Draft<T> {
  const [form, setForm] = useState(() => (drafts.get(name) as T | undefined) ?? first);
  const edit = (change: Partial<T>) =>
    setForm((before) => {
      const changed = { ...before, ...change };
      drafts.set(name, changed);
      return changed;
    });
  return { form, edit, drop: () => void drafts.delete(name) };
}
