import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { IPFS_LIMITS } from '../../store/ipfs/limits.ts';
import { Dag } from '../../store/ipfs/testing/dags.ts';
import { createTestCore } from '../../testing/core.ts';
import { FAIR_BYTES } from '../storage/takers.ts';
import { TestReader } from '../storage/testing/reader.ts';
import { Cars } from './gateway.ts';

/** More than the buffers of a connection that nobody reads from hold. */
const LARGE_BYTES = 24 * 1024 * 1024;
const OWN = '127.0.0.9';
const MINUTE_MS = 60_000;

interface Asked {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

/** Asks from one of this machine's addresses, and reads nothing of the answer. */
async function ask(url: string, localAddress: string): Promise<Asked> {
  const asked = request(url, { localAddress, agent: false }).on('error', () => {});
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return { request: asked, response: response.on('error', () => {}) };
}

test('who reads no CAR that it asked for keeps others from none', async () => {
  await using core = await createTestCore({
    settings: {
      limits: {
        isEnabled: true,
        perMinute: { general: 1_000_000, authenticated: 1_000_000, heavy: 1_000_000 },
        trustedProxies: [],
        exempt: [OWN],
      },
    },
  });
  const dag = new Dag();
  const root = String(await dag.directory({ 'large.bin': randomBytes(LARGE_BYTES) }));
  for (const block of dag.blocks)
    await (await core.blobs.receive(Readable.from([block]), block.length)).keep();
  const url = `${await core.listen()}/ipfs/${root}?format=car`;
  const { total, reserve, perClient } = IPFS_LIMITS.cars;

  const held: Asked[] = [];
  const hold = async (address: string) => {
    const asked = await ask(url, address);
    if (asked.response.statusCode === 200) held.push(asked);
    return asked.response.statusCode;
  };
  for (let n = 0; n < perClient; n++) assert.equal(await hold('127.0.0.2'), 200);
  assert.equal(await hold('127.0.0.2'), 429, 'a client has its share');
  assert.equal(await hold('127.0.0.3'), 200, 'and another its own');
  for (let n = 0; held.length < total - reserve; n++)
    assert.equal(await hold(`127.0.1.${1 + Math.floor(n / perClient)}`), 200);
  assert.equal(await hold('127.0.0.4'), 503, 'the rest is kept for own services');
  assert.equal(await hold(OWN), 200);
  held[0]!.request.destroy();
  await until(
    'its place is free again',
    () => hold('127.0.0.4'),
    (status) => status === 200,
  );
  for (const one of held) one.request.destroy();
});

test('where all places of CARs are taken, one slow reader of the client with most goes for who comes; where nobody is slow, only for who has none', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { total, reserve, perClient } = IPFS_LIMITS.cars;
  const cars = new Cars();
  const read = (key: string) => {
    const reader = new TestReader(key);
    cars.take({ key, isExempt: key === 'own' }, reader.reply);
    return reader;
  };
  const honest = read('honest');
  const strangers = Array.from({ length: total - reserve - 1 }, (_, n) =>
    read(`${Math.floor(n / perClient)}`),
  );
  const ended = () => [honest, ...strangers].filter(({ isEnded }) => isEnded);
  for (const reader of [honest, ...strangers]) reader.take(FAIR_BYTES);
  t.mock.timers.tick(MINUTE_MS);
  const some = `${Math.floor((strangers.length - 1) / perClient)}`;
  assert.throws(() => read(some), { code: 'OVERLOADED' });
  assert.deepEqual(ended(), [], 'nobody is slow');
  read('new');
  assert.deepEqual(ended(), strangers.slice(0, 1));

  honest.take(1);
  for (const [n, reader] of strangers.entries()) reader.take(2 + n);
  t.mock.timers.tick(MINUTE_MS);
  assert.equal(ended().length, 1, 'nobody comes');
  read('newer');
  assert.deepEqual(ended(), [strangers[0], strangers[perClient]]);
  for (let n = 0; n < reserve; n++) read('own');
  assert.equal(ended().length, 2, 'places are kept for our own');
  read('own');
  const third = strangers[2 * perClient];
  assert.deepEqual(ended(), [strangers[0], strangers[perClient], third], 'our own come as if they had none');
});
