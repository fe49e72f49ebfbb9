import { AppError } from '@skerry/protocol/forms';
import type { Context } from './context.ts';
import { terminalText } from './output/text.ts';

export interface ConfirmTexts {
  /** What a script is to do. */
  readonly unattended: string;
  /** What is said of a no. */
  readonly refused: string;
}

/** Throws CONFIRMATION_REQUIRED where nobody can be asked, or the answer is no. */
export async function confirm(
  { stdin, output }: Pick<Context, 'stdin' | 'output'>,
  question: string,
  { unattended, refused }: ConfirmTexts,
): Promise<void> {
  const refuse = (message: string) =>
    new AppError('CONFIRMATION_REQUIRED', message, { details: { hint: unattended } });
  if (!stdin.isTTY || !output.stderr.isTTY) throw refuse('there is no terminal to ask for confirmation');
  const { createInterface } = await import('node:readline/promises');
  const asker = createInterface({ input: stdin, output: output.stderr });
  try {
    if (!/^y(es)?$/i.test((await asker.question(`${terminalText(question, false)} [y/N] `)).trim()))
      throw refuse(refused);
  } finally {
    asker.close();
  }
}
