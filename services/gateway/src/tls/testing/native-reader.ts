import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildProgram, NATIVE, SANITIZER_FLAGS } from '../../dataplane/native/build.ts';
import type { HelloAnswer } from '../client-hello.ts';

/** Bytes, and after how many of them the reader is asked each time. */
export interface CutHello {
  readonly wire: Uint8Array;
  readonly ends: readonly number[];
}

const KINDS = ['need_more', 'not_tls', 'server_name', 'no_server_name', 'malformed'] as const;

/** The native parser as a program of its own, with the sanitizers: a read beyond the bytes that came ends it. */
export async function buildNativeReader(cacheDir: string): Promise<string> {
  const sources = [fileURLToPath(new URL('read-hellos.c', import.meta.url)), join(NATIVE, 'hello.c')];
  const program = { name: 'read-hellos', sources, idleExitCode: 0 };
  const built = await buildProgram(program, cacheDir, SANITIZER_FLAGS);
  if ('missing' in built) throw new Error(`the native reader cannot be built here: ${built.missing}`);
  return built.path;
}

/** What the native parser says of each hello, for comparison with ours. The reason of what is malformed is not told. */
export async function readNatively(readerPath: string, hellos: readonly CutHello[]): Promise<HelloAnswer[]> {
  const child = spawn(readerPath, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = once(child, 'close') as Promise<[number | null, string | null]>;
  child.stdin.on('error', () => {});
  for (const { wire, ends } of hellos) {
    const head = new Uint32Array([wire.length, ends.length]);
    child.stdin.write(Buffer.from(head.buffer));
    child.stdin.write(Buffer.from(wire));
    child.stdin.write(Buffer.from(Uint32Array.from(ends).buffer));
  }
  child.stdin.end();
  const [code, signal] = await closed;
  if (code !== 0) throw new Error(`the native reader ended with ${signal ?? code}`);
  const answers = Buffer.concat(chunks);
  let at = 0;
  return hellos.map(() => {
    const kind = KINDS[answers[at]!]!;
    const length = answers[at + 1]!;
    const serverName = answers.toString('latin1', at + 2, at + 2 + length);
    at += 2 + length;
    if (kind === 'server_name') return { kind, serverName };
    return kind === 'malformed' ? { kind, reason: '' } : { kind };
  });
}
