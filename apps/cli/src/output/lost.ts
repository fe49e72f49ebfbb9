import { EXIT } from '../exit-codes.ts';
import type { CommandHost } from '../host.ts';

/** What becomes of a command when its standard output takes nothing any more. */
type OnLost = (error: NodeJS.ErrnoException) => void;

const chosen = new WeakMap<object, OnLost>();

/** Whether whoever read it has gone: a program behind a pipe, or somebody at a terminal. */
const isReaderGone = ({ code }: NodeJS.ErrnoException) => code === 'EPIPE' || code === 'EIO';

/** A reader that has seen enough (`| head`), or a terminal that was closed, is not a failure. Anything else is told. */
const endQuietly =
  (tell: OnLost): OnLost =>
  (error) => {
    if (isReaderGone(error)) process.exit(EXIT.ok);
    tell(error);
    process.exit(EXIT.failed);
  };

/** Ends with its reader, and lives on without one on a full disk. */
export const outliveFullDisk: OnLost = (error) => {
  if (isReaderGone(error)) process.exit(EXIT.ok);
};

/** Whoever writes hears of it, and decides. */
export const leaveToWriter: OnLost = () => {};

/** Chooses what becomes of the command, until it is disposed of. */
export function whenLost(stdout: object, onLost: OnLost): Disposable {
  chosen.set(stdout, onLost);
  return { [Symbol.dispose]: () => void chosen.delete(stdout) };
}

/**
 * Heeds what is chosen at that time; without it, the command ends: quietly where its reader has gone.
 * @param tell says what else went wrong, such as a full disk
 */
export function watchForLoss({ stdout, stderr }: Pick<CommandHost, 'stdout' | 'stderr'>, tell: OnLost): void {
  const usual = endQuietly(tell);
  stdout.on('error', (error: NodeJS.ErrnoException) => (chosen.get(stdout) ?? usual)(error));
  // What it says beside the result: the exit code tells how it ended, whoever hears that.
  stderr.on('error', () => {});
}
