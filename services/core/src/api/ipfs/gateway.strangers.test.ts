import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { IPFS_LIMITS } from '../../store/ipfs/limits.ts';
import { Dag } from '../../store/ipfs/testing/dags.ts';
import { createTestCore } from '../../testing/core.ts';

/** More than the buffers of a connection that nobody reads from hold. */
const LARGE_BYTES = 24 * 1024 * 1024;
const OWN = '127.0.0.9';

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

test('who reads no CAR that it asked for keeps others from none', async (t) => {
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
  t.mock.timers.enable({ apis: ['setInterval'] });
  const dag = new Dag();
  const root = String(await dag.directory({ 'large.bin': randomBytes(LARGE_BYTES) }));
  for (const block of dag.blocks)
    await (await core.blobs.receive(Readable.from([block]), block.length)).keep();
  const url = `${await core.listen()}/ipfs/${root}?format=car`;
  const { total, reserve, perClient } = IPFS_LIMITS.cars.running;

  const held: Asked[] = [];
  const hold = async (address: string) => {
    const asked = await ask(url, address);
    if (asked.response.statusCode === 200) held.push(asked);
    return asked.response.statusCode;
  };
  const endFirst = () => held.shift()!.request.destroy();
  for (let n = 0; n < perClient; n++) assert.equal(await hold('127.0.0.2'), 200);
  const beyond = hold('127.0.0.2');
  assert.equal(await hold('127.0.0.3'), 200, 'a client that has its share waits for itself');
  assert.equal(held.length, perClient + 1);
  endFirst();
  assert.equal(await beyond, 200);
  for (let n = 0; held.length < total - reserve; n++)
    assert.equal(await hold(`127.0.1.${1 + Math.floor(n / perClient)}`), 200);
  const next = hold('127.0.0.4');
  assert.equal(await hold(OWN), 200, 'the rest is kept for own services');
  assert.equal(held.length, total - reserve + 1);
  endFirst();
  assert.equal(await next, 200, 'its place is free again');
  t.mock.timers.tick(60_000);
  assert.equal(await hold('127.0.0.5'), 200, 'one that reads nothing goes for who has none');
  for (const one of held) one.request.destroy();
});
