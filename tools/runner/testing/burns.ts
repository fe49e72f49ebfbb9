import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
  const script = `setsid "$0" -e "$1" <&0 & exit 0`;
  const shell = spawn('sh', ['-c', script, process.execPath, BURN], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(shell.stdout, 'data');
  console.log('burnt');
  await once(process.stdin, 'end');
  shell.stdin.end();
  await once(shell.stdout, 'end');
});
