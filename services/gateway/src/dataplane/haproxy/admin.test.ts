import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AdminSocket } from './admin.ts';

/** A HAProxy that answers each command with itself, from when it is told to. */
async function openSocket() {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-admin-'));
  const path = join(directory, 'admin.sock');
  const heard: string[] = [];
  const begun = Promise.withResolvers<void>();
  const server = createServer((socket: Socket) => {
    socket.once('data', (line) => {
      const command = String(line).trim();
      heard.push(command);
      void begun.promise.then(() => socket.end(command));
    });
  }).listen(path);
  await once(server, 'listening');
  return {
    ...{ path, heard, begin: begun.resolve },
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
}

test('what goes first waits for one command at most, however many questions wait; equal ones are one', async () => {
  await using socket = await openSocket();
  const admin = new AdminSocket(socket.path);
  const asked = Array.from({ length: 1_001 }, (_, index) => admin.ask(`question ${index}`));
  const same = admin.ask('question 7');
  await assert.rejects(admin.ask('one more'), { code: 'OVERLOADED' });
  const orders = [admin.askFirst('order'), admin.askFirst('order')];
  socket.begin();
  assert.deepEqual(await Promise.all(orders), ['order', 'order']);
  assert.equal(await same, 'question 7');
  assert.equal((await Promise.all(asked)).at(-1), 'question 1000');
  assert.deepEqual(socket.heard.slice(0, 4), ['question 0', 'order', 'order', 'question 1']);
  assert.equal(socket.heard.length, 1_003);
});

test('a HAProxy that is not there refuses each command, and is asked again', async () => {
  const socket = await openSocket();
  const admin = new AdminSocket(socket.path);
  socket.begin();
  assert.equal(await admin.ask('before'), 'before');
  await socket[Symbol.asyncDispose]();
  await assert.rejects(Promise.all([admin.ask('question'), admin.askFirst('order')]), { code: 'ENOENT' });
});
