import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Heard, hear } from '@skerry/kit/testing/heard';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { buildProgram, USAGE_EXIT_CODE } from '../build.ts';
import { TEST_CACHE } from './built.ts';

const SOURCE = fileURLToPath(new URL('./crowd.c', import.meta.url));

/** Builds the program that is many clients, once for each version. */
export async function buildCrowd(): Promise<string> {
  const program = { name: 'crowd', sources: [SOURCE], idleExitCode: USAGE_EXIT_CODE };
  const built = await buildProgram(program, TEST_CACHE, ['-Werror']);
  if ('missing' in built) throw new Error(`the crowd cannot be built here: ${built.missing}`);
  return built.path;
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
