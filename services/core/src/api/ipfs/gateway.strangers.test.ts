import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
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
  const dag = new Dag();
  const root = String(await dag.directory({ 'large.bin': randomBytes(LARGE_BYTES) }));
  for (const block of dag.blocks)
    await (await core.blobs.receive(Readable.from([block]), block.length)).keep();
  const url = `${await core.listen()}/ipfs/${root}?format=car`;
  const sockets = new Set<Socket>();
  core.api.server.on('connection', (socket: Socket) => sockets.add(socket));
  // Once those of the node itself are begun.
  t.mock.timers.enable({ apis: ['setInterval'] });
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

  const open = () => [...sockets].filter(({ destroyed }) => !destroyed);
  const isSlow = ({ remoteAddress, writableLength }: Socket) => remoteAddress !== OWN && writableLength > 0;
  const sending = await until(
    'something of one waits to be taken',
    open,
    (all) => all.length === total - reserve + 1 && all.some(isSlow),
  );
  t.mock.timers.tick(60_000);
  t.mock.timers.reset();
  const ended = () => sending.filter(({ destroyed }) => destroyed).length;
  assert.equal(ended(), 0, 'nobody waits');
  assert.equal(await hold('127.0.0.5'), 200, 'a client that has none takes the place of the slowest');
  assert.equal(ended(), 1);
  assert.ok(
    open().some(({ remoteAddress }) => remoteAddress === OWN),
    'our own keeps its place',
  );
  for (const one of held) one.request.destroy();
});
