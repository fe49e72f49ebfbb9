import { rmSync } from 'node:fs';
import { constants } from 'node:os';
import type { Output } from './output/output.ts';

/** What a shell answers for a command that Ctrl-C ended. */
const INTERRUPTED_EXIT_CODE = 130;

/** While it is open, Ctrl-C says what becomes of what was asked for, instead of ending without a word. */
export function tellOnInterrupt({ stderr }: Output, text: string): Disposable {
  const onInterrupt = () => {
    stderr.write(`\n${text}\n`);
    process.exit(INTERRUPTED_EXIT_CODE);
  };
  process.once('SIGINT', onInterrupt);
  return { [Symbol.dispose]: () => void process.off('SIGINT', onInterrupt) };
}

const ENDS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** What a shell answers for a command that a signal ended, beside its number. */
const BY_SIGNAL = 128;

/** While it is open, a file that is not whole yet is removed when the command is ended. */
export function removeWhenEnded(path: string): Disposable {
  const listeners = ENDS.map((signal) => {
    const onEnd = () => {
      rmSync(path, { force: true });
      process.exit(BY_SIGNAL + constants.signals[signal]);
    };
    process.once(signal, onEnd);
    return { signal, onEnd };
  });
  return {
    [Symbol.dispose]() {
      for (const { signal, onEnd } of listeners) process.off(signal, onEnd);
    },
  };
}
