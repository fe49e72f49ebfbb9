import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { skerryHere } from './here.ts';

const PUBLIC_KEY = `ssh-ed25519 ${'A'.repeat(68)} me`;

/** Somebody at a shell, with a home and an ssh key of their own and these variables. Takes the process's HOME for it. */
export async function startPerson(home: string, variables: Readonly<Record<string, string>>) {
  await mkdir(join(home, '.ssh'));
  await writeFile(join(home, '.ssh', 'id_ed25519.pub'), PUBLIC_KEY);
  process.env.HOME = home;
  const environment = { PATH: process.env.PATH, SKERRY_HOME: home, HOME: home, ...variables };
  return (...args: string[]) => skerryHere(environment, args);
}
