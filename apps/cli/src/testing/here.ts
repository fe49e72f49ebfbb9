import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Environment } from '../config.ts';
import { runCommandLine } from '../run.ts';

/**
 * `skerry ARGS` in this process, with an environment of its own: for what a command says and does, where the process is not the
 * story. A process for each would be half a second of the processor.
 */
export async function skerryHere(
  environment: Environment,
  args: readonly string[],
  input: string | Uint8Array = '',
) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const said = Promise.all([text(stdout), text(stderr)]);
  const code = await runCommandLine(args, {
    environment,
    stdin: Readable.from(input === '' ? [] : [input]) as unknown as NodeJS.ReadStream,
    stdout: stdout as unknown as NodeJS.WriteStream,
    stderr: stderr as unknown as NodeJS.WriteStream,
  });
  stdout.end();
  stderr.end();
  const [out, err] = await said;
  return { out, err, code };
}

/** The same of a command that must succeed: what it printed. */
export async function succeedHere(environment: Environment, ...args: string[]): Promise<string> {
  const { out, err, code } = await skerryHere(environment, args);
  if (code !== 0) throw new Error(`skerry ${args.join(' ')} ended with ${code}: ${err || out}`);
  return out.trim();
}
