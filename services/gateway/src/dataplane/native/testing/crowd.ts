import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Heard, hear } from '@skerry/kit/testing/heard';
import { playProgram } from '@skerry/kit/testing/play';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { TEST_CACHE } from './built.ts';

const SOURCE = fileURLToPath(new URL('./crowd.c', import.meta.url));

/** Builds the program that is many clients, once for each version. */
export async function buildCrowd(): Promise<string> {
  const hash = createHash('sha256').update(await readFile(SOURCE));
  const path = join(TEST_CACHE, `crowd-${hash.digest('hex').slice(0, 16)}`);
  if (
    await access(path).then(
      () => true,
      () => false,
    )
  )
    return path;
  await mkdir(TEST_CACHE, { recursive: true });
  await playProgram('the compiler', 'cc', ['-O2', '-Wall', SOURCE, '-o', path]);
  return path;
}

/**
 * `silent`: says nothing; `part`: a hello that breaks off somewhere; `whole`: a whole one; `flood`: and as much behind it as
 * is taken.
 */
export type CrowdKind = 'silent' | 'part' | 'whole' | 'flood';

/** So many clients, of one kind, from many addresses. They come one after another, and go when they are told. */
export class Crowd {
  readonly #child: ChildProcess;
  readonly #heard: Heard;

  constructor(path: string, port: number, count: number, kind: CrowdKind, hello: Uint8Array) {
    const args = [port, count, kind, Buffer.from(hello).toString('hex')].map(String);
    this.#child = spawn(path, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#heard = hear(this.#child, ['stderr']);
  }

  /** Resolves with their number when all have come. */
  async come(): Promise<number> {
    return Number(await awaitOutput(this.#child, 'the crowd', this.#heard));
  }

  async go(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin!.end();
    await ended;
  }
}
