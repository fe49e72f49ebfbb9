import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTestDir } from '../testing/network.ts';
import { startChain } from './chain.ts';
import { dumpState, keepDumping, restAfter } from './dumps.ts';

const askOf =
  (url: string) =>
  async (method: string, ...params: unknown[]): Promise<string> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url, { method: 'POST', headers, body });
    return ((await response.json()) as { result: string }).result;
  };

test('the larger a state is, the longer it stands: a chain that grows for a day writes gigabytes, not terabytes', () => {
  assert.equal(restAfter(0), 5_000);
  assert.equal(restAfter(1_000), 5_000);
  assert.equal(restAfter(65_536_000), 1_000_000);
  // A block each two seconds, of six kilobytes: what is written in a day.
  let written = 0;
  for (let ms = 0; ms < 86_400_000; ) {
    const bytes = (ms / 2_000) * 6_000;
    written += bytes;
    ms += restAfter(bytes);
  }
  assert.ok(written < 65_536 * 86_400 * 1.1, `${written} bytes`);
});

test('the state is written while there are new blocks, and nothing of a long chain stands outside of its directory', async () => {
  await using directory = await createTestDir();
  const before = process.env.HOME;
  const home = join(directory.path, 'home');
  process.env.HOME = home;
  const path = join(directory.path, 'chain');
  await using chain = await startChain(path).finally(() => {
    process.env.HOME = before;
  });
  const ask = askOf(chain!.url);
  const file = join(path, 'state.json');
  const rests: number[] = [];
  const inodes: (number | undefined)[] = [];
  await keepDumping(
    (method) => ask(method),
    file,
    new AbortController().signal,
    async (ms) => {
      rests.push(ms);
      inodes.push(
        await stat(file).then(
          ({ ino }) => ino,
          () => undefined,
        ),
      );
      // More blocks than anvil keeps states of in memory, unless it is told otherwise.
      if (rests.length === 1) await ask('anvil_mine', '0x400');
      return rests.length < 4;
    },
  );
  assert.equal(inodes[0], undefined);
  assert.ok(inodes[1], 'it was written');
  assert.deepEqual(inodes.slice(2), [inodes[1], inodes[1]]);
  assert.ok(rests[1]! > 5_000, `${rests}`);
  assert.deepEqual(rests.slice(2), [5_000, 5_000]);
  const { best_block_number: head } = JSON.parse(await readFile(file, 'utf8'));
  assert.equal(Number(head), Number(await ask('eth_blockNumber')));
  await assert.rejects(readdir(home), { code: 'ENOENT' });
});

test('a chain that does not answer is asked ever less often, and its state stays', async () => {
  const rests: number[] = [];
  const refuse = () => Promise.reject(new Error('nobody listens'));
  await keepDumping(refuse, '/nowhere/state.json', new AbortController().signal, async (ms) => {
    rests.push(ms);
    return rests.length < 12;
  });
  assert.deepEqual([...rests.slice(0, 3), rests.at(-1)], [5_000, 10_000, 20_000, 600_000]);
  await assert.rejects(dumpState(async () => '0x', '/nowhere/state.json', undefined));
});
