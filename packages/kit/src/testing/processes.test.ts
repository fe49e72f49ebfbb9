import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { hear } from './heard.ts';
import { awaitOutput, awaitReady, endProcess } from './processes.ts';

const start = (program: string, code: string) =>
  spawn(program, ['-e', code], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });

test('a process says that it is ready, or how it ended is told at once', async (t) => {
  const serving = start(process.execPath, 'process.send({ urls: ["here"] })');
  t.after(() => serving.kill('SIGKILL'));
  assert.deepEqual(await awaitReady(serving, 'a daemon'), { urls: ['here'] });
  const { listenerCount } = serving;
  assert.deepEqual(
    ['message', 'exit', 'error'].map((event) => listenerCount.call(serving, event)),
    [0, 0, 0],
  );
  await assert.rejects(awaitReady(start(process.execPath, 'process.exit(7)'), 'a daemon'), {
    message: 'a daemon ended with 7 before it was ready',
  });
  const killed = start(process.execPath, 'setInterval(() => {}, 1000)');
  killed.kill('SIGKILL');
  await assert.rejects(awaitReady(killed, 'a daemon'), /ended with SIGKILL/);
  await assert.rejects(awaitReady(start('/nowhere/at/all', ''), 'a daemon'), { code: 'ENOENT' });
});

test('one that is heard is told of with its last words', async () => {
  const code = 'console.error("no room"); process.exit(7)';
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  await assert.rejects(awaitReady(child, 'a daemon', hear(child)), {
    message: 'a daemon ended with 7 before it was ready; its last words:\nno room',
  });
});

test('a process prints that it is ready, or how it ended is told at once', async (t) => {
  const print = (code: string) =>
    spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] });
  const serving = print('console.log("up"); setInterval(() => {}, 1000)');
  t.after(() => serving.kill('SIGKILL'));
  assert.equal(await awaitOutput(serving, 'a server'), 'up\n');
  await assert.rejects(awaitOutput(print('process.exit(7)'), 'a server'), {
    message: 'a server ended with 7 before it was ready',
  });
});

test('one that prints that it is ready is heard, too; what it leaves behind does not make it ready', async () => {
  const code = 'console.error("no room"); process.exit(7)';
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'pipe'] });
  await assert.rejects(awaitOutput(child, 'a server', hear(child, ['stderr'])), {
    message: 'a server ended with 7 before it was ready; its last words:\nno room',
  });
  const over = start(process.execPath, 'process.exit(7)');
  const lastWords = async () => {
    over.emit('message', 'late');
    await setImmediate();
    return 'words';
  };
  await assert.rejects(awaitReady(over, 'a daemon', { lastWords }), /ended with 7 .*:\nwords$/);
});

test('nobody waits for a process that has ended', async () => {
  const child = start(process.execPath, 'process.exit(7)');
  await once(child, 'exit');
  await assert.rejects(awaitReady(child, 'a daemon'), {
    message: 'a daemon ended with 7 before it was ready',
  });
});

test('a process is ended once, and nobody waits for one that is gone', async () => {
  const child = start(process.execPath, 'setInterval(() => {}, 1000)');
  await endProcess(child, 'SIGTERM');
  assert.equal(child.signalCode, 'SIGTERM');
  await endProcess(child, 'SIGKILL');
  await endProcess(undefined, 'SIGKILL');
  const never = start('/nowhere/at/all', '');
  await assert.rejects(awaitReady(never, 'nothing'));
  await endProcess(never, 'SIGKILL');
});
