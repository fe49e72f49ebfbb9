import { signal } from '@preact/signals';

/** Unix milliseconds, once a second: what is told as an age follows it. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);
