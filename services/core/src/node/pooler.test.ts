import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { startTcpTestServer, startTestPooler } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { signers } from '../testing/core.ts';
import { type NodeProcess, startNode } from '../testing/node.ts';

const MESSAGES = 40;
const NODES = 2;

test('two processes of a core node share a database through PgBouncer in transaction mode', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-pooler-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startTcpTestServer(createLogger('test', 'silent')));
  // Fewer connections to the server than either node has to the pooler.
  const { url } = stack.use(await startTestPooler(server.url, { default_pool_size: '6' }));
  const nodes: NodeProcess[] = [];
  for (let index = 0; index < NODES; index++) {
    const node = await startNode(home, url);
    stack.defer(() => node.end('SIGKILL'));
    nodes.push(node);
  }
  const post = async (draft: { type: string; content: object }, to: number) => {
    const { body, itemHash } = signMessage({ channel: 'pooler', ...draft }, signers.alice);
    const send = async () => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${nodes[to]!.url}/api/v0/messages`, { method: 'POST', headers, body });
      assert.ok(answer.ok, await answer.text());
    };
    return { itemHash, send };
  };
  const hashes = await Promise.all(
    Array.from({ length: MESSAGES }, async (_, n) => {
      const note = await post({ type: 'POST', content: { type: 'note', content: { n } } }, n % 2);
      const amend = { type: 'POST', content: { type: 'amend', ref: note.itemHash, content: { n } } };
      // It waits for the note, which the other node takes, and is written anew.
      const early = await post(amend, (n + 1) % 2);
      await early.send();
      await note.send();
      return [note.itemHash, early.itemHash];
    }),
  );
  const list = hashes.flat();
  for (const node of nodes)
    await until(
      'every message is in force',
      async () => {
        const answer = await fetch(`${node.url}/api/v0/messages?hashes=${list.join()}&limit=100`);
        return ((await answer.json()) as { messages: unknown[] }).messages.length;
      },
      (count) => count === list.length,
    );
});
