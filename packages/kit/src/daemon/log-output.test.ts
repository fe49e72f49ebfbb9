import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const LOG = fileURLToPath(new URL('./log.ts', import.meta.url));
const script = (body: string) =>
  `import { createLogger } from ${JSON.stringify(LOG)}; const log = createLogger('t'); ${body}`;

test('a process whose log reader is gone goes on, and ends', async () => {
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      script(
        "process.stdin.once('data', () => { for (let n = 0; n < 1000; n++) log.info('x'.repeat(200)); process.exit(7); })",
      ),
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  child.stdout.destroy();
  child.stdin.write('go');
  const [code] = (await once(child, 'exit')) as [number];
  assert.equal(code, 7);
});

test('every line reaches a reader, also those right before the end', async () => {
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      script("for (let n = 0; n < 3000; n++) log.info({ n }, 'line'); process.exit(0)"),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let text = '';
  for await (const chunk of child.stdout) text += String(chunk);
  const numbers = text
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { n: number }).n);
  assert.deepEqual(
    numbers,
    Array.from({ length: 3000 }, (_, n) => n),
  );
});
