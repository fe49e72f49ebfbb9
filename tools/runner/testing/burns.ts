import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { test } from 'node:test';

/** Half a second of the processor, by a process whose parent has ended and whose session is another. It stays until its input ends. */
const BURN = `
  for (let count = 0; process.cpuUsage().user < 500_000; ) for (let end = count + 1e7; count < end; count++);
  process.stdout.write('done');
  process.stdin.resume();
`;

/** A test file whose work is done by a daemon, once something comes in, and which then says so. */
test('waits for a daemon', async () => {
  await once(process.stdin, 'data');
  // Not by the shell's own input: that is closed with the shell, and what a shell puts into the background has none.
  const script = 'setsid "$0" -e "$1" <&3 & exit 0';
  const shell = spawn('sh', ['-c', script, process.execPath, BURN], {
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  const input = shell.stdio[3] as Writable;
  await once(shell.stdout!, 'data');
  console.log('burnt');
  await once(process.stdin, 'end');
  input.end();
  await once(shell.stdout!, 'end');
});
