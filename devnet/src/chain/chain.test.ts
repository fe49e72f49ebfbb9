import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { createTestDir } from '../testing/network.ts';
import { startChain } from './chain.ts';

async function ask(url: string, method: string, ...params: unknown[]): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return ((await response.json()) as { result: string }).result;
}

/** As anvil leaves a state after starts at other times: each made a block 0, and they stand in any order. */
async function addStarts(file: string, count: number): Promise<void> {
  const state = JSON.parse(await readFile(file, 'utf8'));
  const genesis = state.blocks.find(({ header }: { header: { number: string } }) => header.number === '0x0');
  const others = Array.from({ length: count }, (_, at) => {
    const timestamp = `0x${(Number(genesis.header.timestamp) + at + 1).toString(16)}`;
    return { ...genesis, header: { ...genesis.header, timestamp } };
  });
  const blocks = [...others.slice(1), ...state.blocks, ...others.slice(0, 1)];
  await writeFile(file, JSON.stringify({ ...state, blocks }));
}

/** The process that was started with a file. */
async function findProcess(file: string): Promise<number> {
  for (const pid of await readdir('/proc')) {
    const commandLine = await readFile(join('/proc', pid, 'cmdline'), 'utf8').catch(() => '');
    if (commandLine.includes(file) && /^[0-9]+$/.test(pid)) return Number(pid);
  }
  throw new Error(`no process has ${file}`);
}

test('the chain keeps its contract and its blocks from one start to the next, and begins anew where a kill tore its state', async () => {
  await using directory = await createTestDir();
  const chain = join(directory.path, 'chain');
  const first = await startChain(chain);
  assert.ok(first, 'anvil is among the packages');
  assert.notEqual(await ask(first.url, 'eth_getCode', first.contract, 'latest'), '0x');
  const head = Number(await ask(first.url, 'eth_blockNumber'));
  const block = await ask(first.url, 'eth_getBlockByNumber', '0x1', false);
  const settings = JSON.parse(await readFile(first.packingFile, 'utf8'));
  assert.equal(settings.anchors[0].contract, first.contract);
  assert.equal((await stat(settings.anchors[0].packing.key_file)).mode & 0o777, 0o600);
  assert.equal(JSON.parse(await readFile(first.followingFile, 'utf8')).anchors[0].packing, undefined);
  const genesis = await ask(first.url, 'eth_getBlockByNumber', '0x0', false);
  await first[Symbol.asyncDispose]();
  const state = join(chain, 'state.json');
  await addStarts(state, 20);
  {
    await using second = await startChain(chain);
    assert.equal(second!.contract, first.contract);
    assert.equal(Number(await ask(second!.url, 'eth_blockNumber')), head);
    assert.deepEqual(await ask(second!.url, 'eth_getBlockByNumber', '0x1', false), block);
    assert.deepEqual(await ask(second!.url, 'eth_getBlockByNumber', '0x0', false), genesis);
  }

  const text = await readFile(state, 'utf8');
  await writeFile(state, text.slice(0, text.length / 2));
  const told: string[] = [];
  await using third = await startChain(chain, (line) => told.push(line));
  assert.match(told.join(), /^the chain begins anew: .*state\.json\.torn/);
  assert.notEqual(await ask(third!.url, 'eth_getCode', third!.contract, 'latest'), '0x');

  // What it had not written yet is gone with a kill, and nobody starts the network again for that.
  process.kill(await findProcess(state), 'SIGKILL');
  const limit = AbortSignal.timeout(60_000);
  while ((await ask(third!.url, 'eth_getCode', third!.contract, 'latest').catch(() => '0x')) === '0x')
    limit.throwIfAborted();
  await until('it is told', () => told.includes('the chain runs again'));
  assert.ok(told.includes('the chain ended; starting it again'), told.join());
});

test('a core node that has nothing to do is told of blocks, and does not ask for them all the time', async () => {
  await using directory = await createTestDir();
  await using chain = await startChain(join(directory.path, 'chain'));
  for (const file of [chain!.packingFile, chain!.followingFile]) {
    const { network } = JSON.parse(await readFile(file, 'utf8')).anchors[0];
    const socket = new WebSocket(network.subscriptions[0]);
    const told = Promise.withResolvers<string>();
    socket.addEventListener('error', () => told.reject(new Error('there is no subscription')));
    socket.addEventListener('open', () =>
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] })),
    );
    socket.addEventListener('message', ({ data }) => {
      const { id, params } = JSON.parse(data);
      if (id === 1) void ask(chain!.url, 'evm_mine').catch(told.reject);
      else told.resolve(params.result.number);
    });
    const number = await told.promise;
    socket.close();
    assert.equal(number, await ask(chain!.url, 'eth_blockNumber'));
  }
});
