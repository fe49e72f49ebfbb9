import assert from 'node:assert/strict';
import { test } from 'node:test';

// What a browser has; the storage is that of all its tabs.
const kept = new Map<string, string>();
const storage = {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => void kept.set(key, value),
  removeItem: (key: string) => void kept.delete(key),
};
const tab = new EventTarget();
Object.defineProperty(globalThis, 'localStorage', { value: storage });
Object.defineProperty(globalThis, 'location', { value: { origin: 'http://core', search: '' } });
Object.defineProperty(globalThis, 'addEventListener', { value: tab.addEventListener.bind(tab) });

test('a list that was chosen in another tab counts here, and is not lost when this one chooses another', async () => {
  const { believe, believed } = await import('./believed.ts');
  believe('schedulers', ['0x1']);
  const [[key, value] = ['', '']] = kept;
  const other = { ...JSON.parse(value), credit_publishers: ['0x2'] };
  kept.set(key, JSON.stringify(other));
  believe('scoring_publishers', ['0x3']);
  assert.deepEqual(JSON.parse(kept.get(key)!), { ...other, scoring_publishers: ['0x3'] });
  kept.delete(key);
  tab.dispatchEvent(Object.assign(new Event('storage'), { key }));
  assert.equal(believed.value.schedulers, null);
});
