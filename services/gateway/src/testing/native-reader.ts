import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buildProgram, type NativeProgram, SANITIZER_FLAGS } from '../dataplane/native/build.ts';

/** A native reader as a program of its own, with the sanitizers: a read beyond the bytes that came ends it. */
export async function buildReader(
  program: Omit<NativeProgram, 'idleExitCode'>,
  cacheDir: string,
  flags: readonly string[] = [],
): Promise<string> {
  const built = await buildProgram({ ...program, idleExitCode: 0 }, cacheDir, [...SANITIZER_FLAGS, ...flags]);
  if ('missing' in built) throw new Error(`the native reader cannot be built here: ${built.missing}`);
  return built.path;
}

export const uint32s = (...values: number[]) => Buffer.from(Uint32Array.from(values).buffer);

type Said<Kind> = Kind extends 'server_name'
  ? { readonly kind: Kind; readonly serverName: string }
  : Kind extends 'malformed'
    ? { readonly kind: Kind; readonly reason: string }
    : { readonly kind: Kind };

/**
 * What a native reader says of each question, in their order: the number of a kind, the length of a name, the name. The reason
 * of what is malformed is not told.
 * @param kinds by their numbers
 */
export async function askReader<Kind extends string>(
  path: string,
  kinds: readonly Kind[],
  questions: readonly (readonly Uint8Array[])[],
): Promise<Said<Kind>[]> {
  const child = spawn(path, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = once(child, 'close') as Promise<[number | null, string | null]>;
  child.stdin.on('error', () => {});
  for (const parts of questions) child.stdin.write(Buffer.concat(parts));
  child.stdin.end();
  const [code, signal] = await closed;
  if (code !== 0) throw new Error(`the native reader ended with ${signal ?? code}`);
  const answers = Buffer.concat(chunks);
  let at = 0;
  return questions.map(() => {
    const kind = kinds[answers[at]!]!;
    const length = answers[at + 1]!;
    const serverName = answers.toString('latin1', at + 2, at + 2 + length);
    at += 2 + length;
    const more = kind === 'server_name' ? { serverName } : kind === 'malformed' ? { reason: '' } : {};
    return { kind, ...more } as Said<Kind>;
  });
}
