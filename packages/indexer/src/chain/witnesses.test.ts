import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { Recognition } from '../recognition.ts';
import { RpcPool } from '../rpc/pool.ts';
import type { Call } from '../rpc/transport.ts';
import { ensureNetwork, haltNetwork } from '../store/networks.ts';
import { createIndexerDatabase } from '../testing/setup.ts';
import { type Identity, identify } from './identity.ts';
import { lookAtHead } from './look.ts';
import { checkAnchor, fetchHeaders, haveMost, judgeBlock } from './source.ts';

interface Node {
  readonly head: number;
  /** Of each of its blocks, twice a digit. */
  readonly digits?: string;
  readonly delayMs?: number;
  readonly isSilent?: boolean;
}

const blockOf = ({ head, digits = 'aa' }: Node, tag: unknown) => ({
  number: `0x${(tag === 'latest' ? head : Number(tag)).toString(16)}`,
  hash: `0x${digits.repeat(32)}`,
  parentHash: `0x${digits.repeat(32)}`,
  timestamp: '0x1',
  logsBloom: `0x${'00'.repeat(256)}`,
});

async function startPool(stack: AsyncDisposableStack, nodes: readonly Node[]): Promise<RpcPool> {
  const urls: string[] = [];
  for (const node of nodes) {
    const server = createServer(async (request, response) => {
      const asked = JSON.parse(await text(request)) as (Call & { id: number }) | (Call & { id: number })[];
      await delay(node.delayMs ?? 0);
      if (node.isSilent) return void response.writeHead(502).end();
      const answers = [asked].flat().map(({ id, method, params }) => ({
        id,
        result: method === 'eth_chainId' ? '0x1' : blockOf(node, params[0]),
      }));
      response.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    stack.defer(() => {
      server.closeAllConnections();
      server.close();
    });
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }
  const { signal } = new AbortController();
  const log = createLogger('test', 'silent');
  return new RpcPool({ urls, timeoutMs: 60_000, restAfterLieMs: 60_000, log, signal });
}

test('at the first looks one endpoint that is quick or alone says nothing of what is final; one that goes on failing is not waited for', async () => {
  await using stack = new AsyncDisposableStack();
  const pool = await startPool(stack, [{ head: 100 }, { head: 90, delayMs: 1_000 }]);
  const { head, agreed } = await lookAtHead(pool, false);
  assert.deepEqual([head.number, agreed], [100, 90]);
  const alone = await startPool(stack, [{ head: 100 }, { head: 90, isSilent: true }]);
  const agreedAlone = async () => (await lookAtHead(alone, false)).agreed;
  assert.equal(await agreedAlone(), undefined);
  assert.equal(await until('the other one has no say', agreedAlone, (one) => one !== undefined), 100);
});

test('a block becomes final as others have it, also where the first of them cannot say or has not been looked at', async () => {
  await using stack = new AsyncDisposableStack();
  const pool = await startPool(stack, [
    { head: 100, digits: 'ee' },
    { head: 100, isSilent: true },
    { head: 100 },
  ]);
  const [liar, silent] = pool.endpoints;
  for (const one of [liar!, silent!]) one.head = 100;
  const [header] = await fetchHeaders(liar!, [50]);
  await assert.rejects(checkAnchor(pool, liar!, header!), /block 50 is another one/);
});

test('another chain than what is stored has to be said by more than half of all endpoints, also of those that are silent', async () => {
  await using stack = new AsyncDisposableStack();
  const [same, other] = [{ head: 9 }, { head: 9, digits: 'bb' }];
  const silent = { head: 9, isSilent: true };
  const isStored = ({ genesis }: Identity) => genesis.startsWith('0xaa');
  const sayOf = async (nodes: readonly Node[]) => {
    const pool = await startPool(stack, nodes);
    return identify(pool, isStored).then(({ genesis }) => genesis.slice(2, 4));
  };
  const fewSay = { code: 'UPSTREAM_UNAVAILABLE' };
  await assert.rejects(sayOf([other, silent]), fewSay);
  await assert.rejects(sayOf([other, silent, silent]), fewSay);
  await assert.rejects(sayOf([silent]), fewSay);
  assert.equal(await sayOf([other]), 'bb');
  assert.equal(await sayOf([other, silent, other]), 'bb');
  assert.equal(await sayOf([other, silent, same]), 'aa');
  assert.equal(await sayOf([other, other, same]), 'bb');
});

test('that a block is gone, and that it is there again, has to be said by more than half of all endpoints', async () => {
  await using stack = new AsyncDisposableStack();
  const [same, other] = [{ head: 9 }, { head: 9, digits: 'bb' }];
  const silent = { head: 9, isSilent: true };
  const [number, hash] = [5, `0x${'aa'.repeat(32)}`];
  const judge = async (...nodes: Node[]) => {
    const pool = await startPool(stack, nodes);
    return [await judgeBlock(pool, number, hash), await haveMost(pool, [{ number, hash }])];
  };
  assert.deepEqual(await judge(other, silent, silent), ['unknown', false]);
  assert.deepEqual(await judge(other, silent), ['unknown', false]);
  assert.deepEqual(await judge(other, other, silent), ['gone', false]);
  assert.deepEqual(await judge(other), ['gone', false]);
  assert.deepEqual(await judge(same, other, silent), ['stands', false]);
  assert.deepEqual(await judge(same, same, other), ['stands', true]);
});

test('of many blocks no more are asked for of an endpoint that does not have the first of them', async () => {
  await using stack = new AsyncDisposableStack();
  const pool = await startPool(stack, [{ head: 99, digits: 'bb' }]);
  const blocks = Array.from({ length: 90 }, (_, number) => ({ number, hash: `0x${'aa'.repeat(32)}` }));
  assert.equal(await haveMost(pool, blocks), false);
  assert.equal(pool.calls, 32);
  const has = await startPool(stack, [{ head: 99 }]);
  assert.equal(await haveMost(has, blocks), true);
  assert.equal(has.calls, 90);
});

test('of a halted network the endpoints are asked at once, then once a minute, however often it is looked at', async () => {
  await using stack = new AsyncDisposableStack();
  const { pool } = stack.use(await createIndexerDatabase());
  const rpc = await startPool(stack, [{ head: 9 }]);
  const { id } = await ensureNetwork(pool, 'halted', 7);
  await haltNetwork(pool, id, 'WRONG_CHAIN', 'another chain');
  let uptimeMs = 0;
  const recognition = new Recognition({
    settings: { name: 'halted', chain_id: 7, on_restart: 'halt', poll_ms: 2_000 },
    ...{ pool, rpc, log: createLogger('test', 'silent'), onReset: () => {}, uptime: () => uptimeMs },
  });
  const looks: boolean[] = [];
  for (uptimeMs of [0, 2_000, 59_999, 60_000, 62_000]) looks.push(await recognition.lookAgain(id));
  assert.deepEqual(looks, [true, false, false, true, false]);
  assert.equal(rpc.calls, 4, 'its chain and its first block');
});
