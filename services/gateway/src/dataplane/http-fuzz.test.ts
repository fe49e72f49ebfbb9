import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askRaw, statusOf } from './testing/suite/http-client.ts';
import { openHttpFuzz } from './testing/suite/http-fuzz.ts';
import { openHttp2Fuzz } from './testing/suite/http2-fuzz.ts';
import { NAME_UNKNOWN } from './testing/suite/world.ts';
import { TsDataPlane } from './ts/plane.ts';

test('instances see nothing but sound requests, whatever clients send', async () => {
  await using fuzz = await openHttpFuzz((options) => new TsDataPlane(options), 7);
  // Where the machine is busy, some come too late to reach an instance.
  for (let batch = 0; batch < 10 || fuzz.reached <= 50; batch++) await fuzz.run(100);
  assert.deepEqual(fuzz.problems, []);
});

test('nothing that clients and instances say over HTTP/2 ends the gateway', async () => {
  await using fuzz = await openHttp2Fuzz((options) => new TsDataPlane(options), 7);
  for (let batch = 0; batch < 6 || fuzz.reached <= 50; batch++) await fuzz.run(100);
  const { http } = fuzz.world.ports;
  const page = await askRaw(http, `GET / HTTP/1.1\r\nHost: ${NAME_UNKNOWN}\r\nConnection: close\r\n\r\n`);
  assert.equal(statusOf(page), 404);
});
