import { effect, signal } from '@preact/signals';

/** What the reader chose. It stays in this browser. */

function remembered<T extends string>(name: string, allowed: readonly T[], fallback: T) {
  const key = `skerry.${name}`;
  const kept = allowed.find((one) => one === localStorage.getItem(key));
  const choice = signal<T>(kept ?? fallback);
  effect(() => {
    if (choice.value === fallback) localStorage.removeItem(key);
    else localStorage.setItem(key, choice.value);
  });
  return choice;
}

export const THEMES = ['system', 'light', 'dark'] as const;
export const theme = remembered('theme', THEMES, 'system');
export const ZONES = ['local', 'utc'] as const;
export const zone = remembered('zone', ZONES, 'local');

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});
