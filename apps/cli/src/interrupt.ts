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
