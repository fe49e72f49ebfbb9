import { failureFor } from '@skerry/kit/journal';
import { CommanderError } from 'commander';
import { EXIT } from './exit-codes.ts';
import { describeFailure, type Failure, renderFailure } from './failure.ts';
import type { CommandHost } from './host.ts';
import { watchForLoss } from './output/lost.ts';
import { createProgram } from './program.ts';

const STDERR = 2;
const SHOWN_CODES = new Set(['commander.help', 'commander.helpDisplayed', 'commander.version']);

/** Runs one command line; resolves with its exit code. */
export async function runCommandLine(args: readonly string[], host: CommandHost): Promise<number> {
  const isJson = isJsonAsked(args);
  // Of a daemon that does not come to its log, the journal's reader finds why by its priority.
  const { JOURNAL_STREAM: journal } = host.environment;
  const tell = (failure: Failure) =>
    void host.stderr.write(failureFor(STDERR, journal, renderFailure(failure, isJson)));
  watchForLoss(host, (error) => tell(describeFailure(error)));
  const outcome: { exitCode: number } = { exitCode: EXIT.ok };
  try {
    await createProgram(host, (exitCode) => {
      outcome.exitCode = exitCode;
    }).parseAsync(args, { from: 'user' });
    return outcome.exitCode;
  } catch (error) {
    const isShown = error instanceof CommanderError && SHOWN_CODES.has(error.code);
    if (isShown && error.exitCode === 0) return EXIT.ok;
    const failure = describeFailure(error);
    // Whoever named a group of commands and none of them has read its help.
    if (isJson || !isShown) tell(failure);
    return failure.exitCode;
  }
}

/** Also where the rest of the line could not be understood. */
function isJsonAsked(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? args.length : end).includes('--json');
}
