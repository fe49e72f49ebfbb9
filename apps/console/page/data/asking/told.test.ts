import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serving } from '@skerry/kit/testing/serving';
import { askTold } from './told.ts';

// What a browser has.
Object.defineProperty(globalThis, 'location', { value: { href: 'http://127.0.0.1/' } });
Object.defineProperty(navigator, 'onLine', { value: true });

const told = (item_hash: string, sender: string, time: number, type: string, content: object) => ({
  ...{ item_hash, sender, time, type: 'POST', chain: 'ETH', signature: '0x', channel: null },
  content: { type, content },
});

test('whoever names a machine in many messages, also a node that had it, does not hide what its scheduler and its node say', async () => {
  const messages = [
    ...Array.from({ length: 150 }, (_, at) => told(`flood${at}`, '0xany', 1_000 - at, 'other', {})),
    ...Array.from({ length: 150 }, (_, at) => told(`flood${at} too`, '0xformer', 500 - at, 'other', {})),
    told('running', '0xnode', 4, 'net-instance-status', { phase: 'running' }),
    told('placed', '0xscheduler', 3, 'net-allocation', { node_id: 'n', node_address: '0xnode' }),
    told('placed first', '0xscheduler', 2, 'net-allocation', { node_id: 'f', node_address: '0xformer' }),
    told('forged', '0xany', 1, 'net-allocation', { node_id: 'n', node_address: '0xany' }),
  ];
  await using core = await serving(({ url }, response) => {
    const { searchParams } = new URL(url!, 'http://core');
    const senders = searchParams.get('addresses')?.split(',');
    const own = messages.filter(({ sender }) => !senders || senders.includes(sender));
    response.end(JSON.stringify({ messages: own.slice(0, Number(searchParams.get('pagination'))) }));
  });
  const { signal } = new AbortController();
  const ask = async (...schedulers: string[]) => {
    const all = await askTold({ coreUrl: core.url, id: 'machine', schedulers }, signal);
    return all.map(({ item_hash: hash }) => hash).filter((hash) => !hash.startsWith('flood'));
  };
  assert.deepEqual(await ask('0xscheduler'), ['placed', 'placed first', 'running']);
  assert.deepEqual(await ask(), []);
});
