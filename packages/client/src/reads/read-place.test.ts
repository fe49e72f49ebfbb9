import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReadPlace } from './read-place.ts';

const WRITE = { method: 'POST' } as const;
const READ = { method: 'GET' } as const;
const told = (event: string) => new Headers({ 'x-last-event': event });

test('reads ask for the newest event that the client knows of, and only they', () => {
  const place = new ReadPlace();
  place.noteEvent('3');
  assert.deepEqual(place.headersOf(READ), {}, 'a client that has written nothing reads from the primary');
  place.noteAnswer(WRITE, told('7'));
  place.noteAnswer(WRITE, told('5'));
  place.noteAnswer(READ, told('9'));
  assert.deepEqual(place.headersOf(READ), { 'x-after-event': '7' });
  assert.deepEqual(place.headersOf(WRITE), {});
  place.noteEvent('8');
  place.noteEvent('6');
  assert.deepEqual(place.headersOf(READ), { 'x-after-event': '8' });
});

test('what a write came to that nobody answered only the primary knows', () => {
  for (const answer of [undefined, new Headers(), told('soon'), told('-1'), told('1'.repeat(40))]) {
    const place = new ReadPlace();
    place.noteAnswer(WRITE, told('7'));
    place.noteAnswer(WRITE, answer);
    place.noteEvent('9');
    assert.deepEqual(place.headersOf(READ), {});
    place.noteAnswer(WRITE, told('4'));
    assert.deepEqual(place.headersOf(READ), { 'x-after-event': '4' });
  }
});
