import { AppError } from '@skerry/protocol/forms';
import type { Context } from './context.ts';
import { ask } from './question.ts';

export interface ConfirmTexts {
  /** What a script is to do. */
  readonly unattended: string;
  /** What is said of a no. */
  readonly refused: string;
}

/** Throws CONFIRMATION_REQUIRED where nobody can be asked, or the answer is no. */
export async function confirm(
  context: Pick<Context, 'stdin' | 'output'>,
  question: string,
  { unattended, refused }: ConfirmTexts,
): Promise<void> {
  const refuse = (message: string) =>
    new AppError('CONFIRMATION_REQUIRED', message, { details: { hint: unattended } });
  if (!context.stdin.isTTY || !context.output.stderr.isTTY)
    throw refuse('there is no terminal to ask for confirmation');
  if (!/^y(es)?$/i.test(await ask(context, `${question} [y/N] `))) throw refuse(refused);
}
