import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

/** Half a second of the processor, by a process whose parent has ended and whose session is another. */
const BURN = `
  for (let count = 0; process.cpuUsage().user < 500_000; ) for (let end = count + 1e7; count < end; count++);
  process.stdout.write('done');
`;

/** A test file whose work is done by a daemon. */
test('waits for a daemon', async () => {
  const script = `setsid "$0" -e "$1" & exit 0`;
  const shell = spawn('sh', ['-c', script, process.execPath, BURN], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(shell.stdout, 'data');
});
