import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signal } from '@preact/signals';
import { askOwner, type Identity, question } from './identity.ts';

const BY: Identity = {
  chain: 'ETH',
  address: `0x${'1'.repeat(40)}`,
  name: 'key of this tab',
  place: 'browser',
  sign: (text: string) => Promise.resolve(`signed ${text}`),
};
const ABOUT = { title: '', facts: [], type: null, isKnown: true, itemHash: null, hostname: null, cost: null };
const NO_LACK = signal<string | null>(null);

test('a question is about its page: when the reader leaves, it and those that wait are refused, and the next page asks', async () => {
  const [left, here] = [new AbortController(), new AbortController()];
  const ask = (text: string, { signal: here }: AbortController) =>
    askOwner({ by: BY, text, about: ABOUT, lack: NO_LACK, here });
  const refused = { code: 'SIGNATURE_REQUIRED' };
  const open = assert.rejects(ask('open', left), refused);
  const waiting = assert.rejects(ask('waiting', left), refused);
  const other = ask('other', here);
  await Promise.resolve();
  assert.equal(question.value?.text, 'open');
  left.abort();
  await Promise.all([open, waiting]);
  assert.equal(question.value?.text, 'other');
  question.value.settle({ isWanted: true });
  assert.equal(await other, 'signed other');
  await assert.rejects(ask('late', left), refused);
  assert.equal(question.value, undefined);
});
