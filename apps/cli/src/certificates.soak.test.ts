import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SKERRY } from './testing/shell.ts';

async function run(command: string, ...args: string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, `${command} ${args.join(' ')} failed; its last words are above`);
}

/** In a network namespace of its own, so that ports and interfaces are nobody else's; that takes root. */
const runAlone = (scenario: string) =>
  run(
    'unshare',
    '--net',
    '--',
    process.execPath,
    fileURLToPath(new URL(`./testing/${scenario}`, import.meta.url)),
  );

test('a server behind either data plane gets real certificates, by HTTP-01 and by TLS-ALPN-01', async () => {
  await runAlone('certificates.ts');
});

test('so does Caddy in a virtual machine, through the gateway of a whole network', async () => {
  await run(process.execPath, SKERRY, 'image', 'build', 'debian:12');
  await runAlone('certificates-vm.ts');
});
