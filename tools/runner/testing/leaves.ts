import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';

/** A test file that passes and leaves a process, by way of one that has ended, whose session is another. */
test('passes', async () => {
  const script = 'setsid sleep 1000 >/dev/null 2>&1 & echo $!';
  const shell = spawn('sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  for await (const chunk of shell.stdout) text += chunk;
  writeFileSync(process.env.TEST_PIDS!, JSON.stringify([Number(text)]));
});
