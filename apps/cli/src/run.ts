import { CommanderError } from 'commander';
import { EXIT } from './exit-codes.ts';
import { describeFailure, renderFailure } from './failure.ts';
import type { CommandHost } from './host.ts';
import { createProgram } from './program.ts';

const HELP_CODES = new Set(['commander.help', 'commander.helpDisplayed', 'commander.version']);

/** Runs one command line; resolves with its exit code. */
export async function runCommandLine(args: readonly string[], host: CommandHost): Promise<number> {
  // A reader that has seen enough (`| head`), or a terminal that was closed, is not a failure.
  host.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
    process.exit(EXIT.ok);
  });
  const outcome: { exitCode: number } = { exitCode: EXIT.ok };
  try {
    await createProgram(host, (exitCode) => {
      outcome.exitCode = exitCode;
    }).parseAsync(args, { from: 'user' });
    return outcome.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && HELP_CODES.has(error.code)) {
      // Help that was asked for, or a group of commands of which none was named.
      return error.exitCode === 0 ? EXIT.ok : EXIT.wrongUse;
    }
    const failure = describeFailure(error);
    host.stderr.write(renderFailure(failure, isJsonAsked(args)));
    return failure.exitCode;
  }
}

/** Also where the rest of the line could not be understood. */
function isJsonAsked(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? args.length : end).includes('--json');
}
