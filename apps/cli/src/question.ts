import { once } from 'node:events';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from './context.ts';
import { terminalText } from './output/text.ts';

/**
 * What a person types at a question. Throws INTERRUPTED for Ctrl-C, which readline takes from the keyboard before it is a signal, and
 * CONFIRMATION_REQUIRED for Ctrl-D and an input that ends: neither is an answer.
 */
export async function ask(
  { stdin, output }: Pick<Context, 'stdin' | 'output'>,
  question: string,
): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const asker = createInterface({ input: stdin, output: output.stderr });
  const isEnded = once(asker, 'close').then(() => undefined);
  let isInterrupted = false;
  asker.on('SIGINT', () => {
    isInterrupted = true;
    asker.close();
  });
  try {
    const answer = await Promise.race([
      asker.question(terminalText(question, false)).catch(() => undefined),
      isEnded,
    ]);
    if (answer !== undefined) return answer.trim();
  } finally {
    asker.close();
  }
  output.stderr.write('\n');
  throw isInterrupted
    ? new AppError('INTERRUPTED', 'not confirmed; nothing was changed')
    : new AppError('CONFIRMATION_REQUIRED', 'there was no answer; nothing was changed');
}
