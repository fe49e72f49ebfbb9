import { computed, signal } from '@preact/signals';
import { parseRoute } from '../pure/route.ts';

const pathOf = (hash: string) => hash.split('?', 1)[0];

const hash = signal(location.hash);
let staying = new AbortController();
addEventListener('hashchange', () => {
  // Another order of the same list is no other page.
  if (pathOf(location.hash) !== pathOf(hash.value)) {
    scrollTo(0, 0);
    staying.abort();
    staying = new AbortController();
  }
  hash.value = location.hash;
});

export const route = computed(() => parseRoute(hash.value));

/** Ends when the reader goes to another page. What they wanted on this one, they are asked to sign on no other. */
export const whileHere = (): AbortSignal => staying.signal;
