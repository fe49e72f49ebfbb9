import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { WHOLE_BYTES } from './flows.ts';
import { createUploadPlaces } from './places.ts';

const MINUTE_MS = 60_000;
const signal = new AbortController().signal;

test('one customer of a network sends slowly as many clients, each fast enough for its only place: others send files all the same', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let letGo = 0;
  const places = createUploadPlaces({ uploads: 200, uploadsPerClient: 8 }, { letGo: () => letGo++ });
  let minutes = 0;
  const ended: string[] = [];
  const send = async (key: string) => {
    const place = await places.take({ key, isExempt: false }, signal);
    place.watch({
      isWhole: true,
      passed: () => minutes * WHOLE_BYTES,
      isClientsTurn: () => true,
      isOver: () => false,
      end: () => ended.push(key),
    });
  };
  const site = (number: number) => `2001:db8:1:${(number + 1).toString(16)}::/64`;
  for (let number = 0; number < 180; number++) await send(site(number));
  minutes++;
  t.mock.timers.tick(MINUTE_MS);
  // More of them wait in the line before the others.
  const leaving = new AbortController();
  const more = [200, 201].map((number) =>
    assert.rejects(places.take({ key: site(number), isExempt: false }, leaving.signal)),
  );
  assert.equal(places.waiting, 2);
  for (const honest of ['198.51.100.1', '2001:db8:2:1::/64']) await send(honest);
  assert.deepEqual([ended, letGo, places.taken, places.waiting], [[site(0), site(1)], 2, 180, 2]);
  leaving.abort();
  await Promise.all(more);
});

/** Senders of so many bytes a second, who have places since then. */
function sendersOf(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const places = createUploadPlaces({ uploads: 200, uploadsPerClient: 8 }, { letGo: () => {} });
  let seconds = 0;
  const ended: string[] = [];
  const send = async (key: string, rate: number) => {
    const place = await places.take({ key, isExempt: false }, signal);
    const since = seconds;
    place.watch({
      isWhole: true,
      passed: () => (seconds - since) * rate,
      isClientsTurn: () => true,
      isOver: () => false,
      end: () => ended.push(key),
    });
  };
  const pass = async (more: number) => {
    for (const end = seconds + more; seconds < end; ) {
      seconds++;
      t.mock.timers.tick(1_000);
      await new Promise(setImmediate);
    }
  };
  return { places, send, pass, ended };
}

test('addresses that send many files slowly keep others out for ten seconds at most, not for the first minute', async (t) => {
  const { places, send, pass, ended } = sendersOf(t);
  for (let number = 0; number < 180; number++) await send(`198.51.${number % 24}.1`, 1_000);
  const coming = send('203.0.113.1', 1_000_000);
  await pass(10);
  await coming;
  assert.deepEqual([ended.length, places.taken, places.waiting], [1, 180, 0]);
  assert.match(ended[0]!, /^198\.51\./);
});

test('the 180 addresses of a /24, each with one fast upload, leave a place to whoever comes from elsewhere', async (t) => {
  const { places, send, pass, ended } = sendersOf(t);
  for (let number = 0; number < 180; number++) await send(`198.51.100.${number}`, 100_000);
  const coming = send('203.0.113.1', 1_000_000);
  await pass(10);
  await coming;
  assert.deepEqual([ended.length, places.taken], [1, 180]);
  const leaving = new AbortController();
  const near = assert.rejects(
    places.take({ key: '198.51.100.200', isExempt: false }, leaving.signal),
    'of its own network nobody gives way',
  );
  await pass(10);
  assert.equal(ended.length, 1);
  leaving.abort();
  await near;
});

test('180 networks that send slowly keep half of the places: all were theirs for ten minutes, for 10 kB/s each', async (t) => {
  const { places, send, pass, ended } = sendersOf(t);
  for (let number = 0; number < 180; number++) await send(`198.${number}.100.1`, 10_000);
  const coming = Array.from({ length: 90 }, (_, number) => send(`203.${number}.113.1`, 1_000_000));
  await pass(60);
  await Promise.all(coming);
  assert.deepEqual([ended.length, places.taken], [90, 180]);
  const leaving = new AbortController();
  const late = assert.rejects(places.take({ key: '192.0.2.1', isExempt: false }, leaving.signal));
  await pass(10);
  assert.equal(ended.length, 90, 'those that are left are spared');
  assert.ok(ended.every((key) => key.startsWith('198.')));
  leaving.abort();
  await late;
});
