import { computed, signal } from '@preact/signals';
import { parseRoute } from '../pure/route.ts';

const pathOf = (hash: string) => hash.split('?', 1)[0];

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  // Another order of the same list is no other page.
  if (pathOf(location.hash) !== pathOf(hash.value)) scrollTo(0, 0);
  hash.value = location.hash;
});

export const route = computed(() => parseRoute(hash.value));
