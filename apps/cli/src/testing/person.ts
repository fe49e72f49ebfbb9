import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { SKERRY } from './shell.ts';

const PUBLIC_KEY = `ssh-ed25519 ${'A'.repeat(68)} me`;

/** Somebody at a shell, with a home and an ssh key of their own and these variables. */
export async function startPerson(home: string, variables: Readonly<Record<string, string>>) {
  await mkdir(join(home, '.ssh'));
  await writeFile(join(home, '.ssh', 'id_ed25519.pub'), PUBLIC_KEY);
  const env = { ...bareEnvironment(), SKERRY_HOME: home, HOME: home, ...variables };
  return async (...args: string[]) => {
    const child = spawn(process.execPath, [SKERRY, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ]);
    return { out, err, code: code as number };
  };
}
