import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { startIndexer } from './indexer.ts';
import { readHeadMessage } from './rpc/head-feed.ts';
import { Anvil } from './testing/anvil.ts';
import { FaultProxy } from './testing/fault-proxy.ts';
import { createIndexerDatabase, indexerSettings, untilIndexed } from './testing/setup.ts';

/** Whose requests are counted. */
const BLOCKS = 5;

/** A wire between a subscriber and the node, which can go dumb, hang up or be cut. */
async function startWire(target: string) {
  const { port } = new URL(target);
  const sockets = new Set<Socket>();
  const wire = { opened: 0, isDumb: false };
  const server = createServer((near) => {
    wire.opened++;
    const far = connect(Number(port), '127.0.0.1');
    for (const socket of [near, far]) sockets.add(socket.on('error', () => socket.destroy()));
    near.on('data', (data) => wire.isDumb || far.write(data)).on('close', () => far.destroy());
    far.on('data', (data) => wire.isDumb || near.write(data)).on('close', () => near.destroy());
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', () => listening.resolve());
  await listening.promise;
  const hangUp = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  const cut = () => {
    server.close();
    hangUp();
  };
  const url = `ws://127.0.0.1:${(server.address() as { port: number }).port}`;
  return Object.assign(wire, { url, hangUp, cut, [Symbol.dispose]: cut });
}

const start = async (
  anvil: Anvil,
  subscription: string,
  pollMs: number,
  reserve: DiskReserve = BOUNDLESS,
) => {
  const stack = new AsyncDisposableStack();
  const database = stack.use(await createIndexerDatabase());
  const proxy = stack.use(await FaultProxy.start(anvil.url));
  const settings = indexerSettings([proxy.url], { subscriptions: [subscription], poll_ms: pollMs });
  const lines: string[] = [];
  const log = createLogger('test', 'info', { write: (line) => void lines.push(line) });
  const indexer = stack.use(await startIndexer({ pool: database.pool, settings, reserve, log }));
  return {
    ...{ proxy, lines },
    subscribed: () => until('it is subscribed', async () => indexer.health().get('anvil')!.isSubscribed),
    indexed: () => untilIndexed(database.pool, anvil),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
};

describe('the head by subscription', () => {
  test('every block is read when it is told, however seldom the head is polled, and nothing is asked between', async () => {
    await using anvil = await Anvil.start();
    using wire = await startWire(anvil.url);
    await using run = await start(anvil, wire.url, 600_000);
    await run.indexed();
    await run.subscribed();
    const mine = async () => {
      await anvil.mine();
      await run.indexed();
    };
    await mine();
    const before = run.proxy.requests;
    for (let block = 0; block < BLOCKS; block++) await mine();
    // One look, one header; the last final block now and then.
    assert.ok(run.proxy.requests - before <= 4 * BLOCKS, `${run.proxy.requests - before} requests`);
  });

  test('a step that failed is taken again soon, however seldom the head is polled', async () => {
    await using anvil = await Anvil.start();
    using wire = await startWire(anvil.url);
    let isFull = false;
    const take = () => {
      if (isFull) throw new AppError('STORAGE_FULL', 'no room is left');
    };
    await using run = await start(anvil, wire.url, 600_000, { ...BOUNDLESS, take });
    await run.indexed();
    await run.subscribed();
    isFull = true;
    await anvil.mine();
    await until('the step fails', async () =>
      run.lines.some((line) => line.includes('a step at the head failed')),
    );
    isFull = false;
    await run.indexed();
  });

  test('where a subscription goes dumb the head is polled, and it is asked anew', async () => {
    await using anvil = await Anvil.start();
    using wire = await startWire(anvil.url);
    await using run = await start(anvil, wire.url, 20);
    await anvil.mine();
    await run.indexed();
    await run.subscribed();
    const { opened } = wire;
    wire.isDumb = true;
    await until('it is asked anew', async () => {
      await anvil.mine();
      return wire.opened > opened;
    });
    await run.indexed();
    wire.isDumb = false;
    // What was said while it was dumb is lost: whoever asked then would wait for its answer as long as a request may take.
    wire.hangUp();
    await until('it is said to stand again', async () => {
      await anvil.mine();
      return run.lines.some((line) => line.includes('a subscription stands again'));
    });
  });

  test('without a server of subscriptions the head is polled', async () => {
    await using anvil = await Anvil.start();
    using wire = await startWire(anvil.url);
    await using run = await start(anvil, wire.url, 20);
    await run.indexed();
    wire.cut();
    await anvil.mine();
    await run.indexed();
  });

  test('an endpoint that never answers is a stall, and is said to be one, also where the clock was ahead at the start', async (t) => {
    await using database = await createIndexerDatabase();
    const settings = indexerSettings(['http://127.0.0.1:9'], { stall_ms: 1_000 });
    const lines: string[] = [];
    const told = createLogger('test', 'error', { write: (line) => void lines.push(line) });
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 3_600_000 });
    await using indexer = await startIndexer({ pool: database.pool, settings, log: told });
    t.mock.timers.reset();
    await until('it is said', async () => indexer.health().get('anvil')?.isStalled === true);
    assert.equal(lines.filter((line) => line.includes('makes no progress')).length, 1);
  });

  test('no message makes reading it throw', () => {
    const number = fc.constantFrom('0x1f', '0x', 'latest', 31, null);
    const params = fc.record({ subscription: fc.constantFrom('0xa', 7), result: fc.record({ number }) });
    const message = fc.record(
      {
        id: fc.constantFrom(1, 2, null),
        result: fc.constantFrom('0xa', 7, null),
        method: fc.constantFrom('eth_subscription', 'x'),
        params: fc.oneof(params, fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    const text = fc.oneof(
      fc.string(),
      fc.json(),
      message.map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(fc.oneof(text, fc.uint8Array()), (data) => {
        const read = readHeadMessage(data);
        assert.ok(read === undefined || 'subscribed' in read || Number.isSafeInteger(read.number));
      }),
    );
    const told = { method: 'eth_subscription', params: { subscription: '0xa', result: { number: '0x1f' } } };
    assert.deepEqual(readHeadMessage(JSON.stringify(told)), { subscription: '0xa', number: 31 });
    assert.deepEqual(readHeadMessage('{"id":1,"result":"0xa"}'), { subscribed: '0xa' });
  });
});
