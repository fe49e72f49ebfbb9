import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';

/** A test file that never ends: a grandchild in a session of its own holds its pipes, and a server listens. */
const GRANDCHILD = `
  console.log('the grandchild says this');
  setInterval(() => {}, 1000);
`;

test('one that is done', () => {});
test('one that waits for ever', async () => {
  const child = spawn(process.execPath, ['-e', GRANDCHILD], { detached: true, stdio: 'inherit' });
  const bare = spawn('sleep', ['1000'], { detached: true, stdio: 'inherit', env: {} });
  writeFileSync(process.env.TEST_PIDS!, JSON.stringify([process.pid, child.pid, bare.pid]));
  createServer().listen(0);
  await new Promise(() => {});
});
