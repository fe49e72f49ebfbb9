import assert from 'node:assert/strict';
import { test } from 'node:test';
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
