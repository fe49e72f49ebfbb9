import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { hear } from '../testing/heard.ts';
import { awaitOutput } from '../testing/processes.ts';
import { acquireLock } from './file-lock.ts';

let directory: string;
let count = 0;
const freshPath = () => join(directory, `lock-${count++}`);
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skerry-lock-'));
});
after(() => rm(directory, { recursive: true, force: true }));

/** A process that holds the lock and has said so. */
async function startHolder(t: TestContext, path: string) {
  const code = `const { acquireLock } = await import(${JSON.stringify(join(import.meta.dirname, 'file-lock.ts'))});
    const lock = await acquireLock(${JSON.stringify(path)}, { waitMs: 0 });
    lock.write('first text'); lock.write('held'); console.log('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => holder.kill('SIGKILL'));
  await awaitOutput(holder, 'the holder', hear(holder, ['stderr']));
  return holder;
}

test('one holds a lock at a time, and it is free again when its holder is killed', async (t) => {
  const path = freshPath();
  const holder = await startHolder(t, path);
  assert.equal(await acquireLock(path, { waitMs: 0 }), undefined);
  assert.equal(await acquireLock(path, { waitMs: 50 }), undefined);
  assert.equal(await readFile(path, 'utf8'), 'held', 'who waits leaves what the file says');
  const waiting = acquireLock(path, {});
  holder.kill('SIGKILL');
  using lock = await waiting;
  assert.ok(lock);
  assert.equal(await acquireLock(path, { waitMs: 0 }), undefined);
});

test('it is given back once, and held by whoever inherits it', async (t) => {
  const path = freshPath();
  const lock = await acquireLock(path, { waitMs: 0 });
  assert.ok(lock);
  const heir = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', lock.fd] });
  t.after(() => heir.kill('SIGKILL'));
  await once(heir, 'spawn');
  lock[Symbol.dispose]();
  lock[Symbol.dispose]();
  assert.equal(await acquireLock(path, { waitMs: 0 }), undefined);
  heir.kill('SIGKILL');
  using again = await acquireLock(path, {});
  assert.ok(again);
});

test('who waits can leave, and takes nothing along', async (t) => {
  const path = freshPath();
  const holder = await startHolder(t, path);
  const leaving = new AbortController();
  const left = acquireLock(path, { signal: leaving.signal });
  leaving.abort(new Error('left'));
  await assert.rejects(left, /left/);
  await assert.rejects(acquireLock(path, { signal: leaving.signal }), /left/);
  holder.kill('SIGKILL');
  using lock = await acquireLock(path, {});
  assert.ok(lock);
});
