import { rmSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

const ENDS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** What a shell answers for a command that a signal ended, beside its number. */
const BY_SIGNAL = 128;
/** Whoever ends a command does not wait longer for what it leaves behind. */
const LEAVE_LIMIT_MS = 5_000;

type Leave = () => void | Promise<void>;

/** What is to be done before the command ends by a signal. */
const leaving = new Set<Leave>();

async function leave(signal: NodeJS.Signals): Promise<void> {
  // The next signal ends it at once.
  for (const one of ENDS) process.off(one, leave);
  const done = Promise.allSettled([...leaving].map(async (one) => one()));
  await Promise.race([done, delay(LEAVE_LIMIT_MS)]);
  process.exit(BY_SIGNAL + constants.signals[signal]);
}

/** While it is open, something is done before the command ends by Ctrl-C or another signal. */
export function whenEnded(act: Leave): Disposable {
  if (leaving.size === 0) for (const one of ENDS) process.on(one, leave);
  leaving.add(act);
  return {
    [Symbol.dispose]() {
      leaving.delete(act);
      if (leaving.size === 0) for (const one of ENDS) process.off(one, leave);
    },
  };
}

/** While it is open, a file that is not whole yet is removed when the command is ended. */
export const removeWhenEnded = (path: string): Disposable => whenEnded(() => rmSync(path, { force: true }));
