import { AppError } from '@skerry/protocol/forms';
import type { Context } from './context.ts';
import { ask } from './question.ts';

export interface ConfirmTexts {
  /** What a script is to do. */
  readonly unattended: string;
  /** What is said of a no. */
  readonly refused: string;
  /** What is said where nobody can be asked. */
  readonly unasked?: string;
}

/** Options of every command that deletes or replaces what nobody can bring back. */
export interface LossOptions {
  readonly yes?: boolean;
}

/** Before something is lost, unless `--yes` agrees. Throws what `confirm` does. */
export async function confirmLoss(
  context: Pick<Context, 'stdin' | 'output'>,
  { yes }: LossOptions,
  question: string,
): Promise<void> {
  if (yes) return;
  await confirm(context, question, {
    unattended: 'use --yes to go on without confirmation',
    refused: 'not confirmed; nothing was changed',
  });
}

/** Throws CONFIRMATION_REQUIRED where nobody can be asked, or the answer is no. */
export async function confirm(
  context: Pick<Context, 'stdin' | 'output'>,
  question: string,
  { unattended, refused, unasked = 'there is no terminal to ask for confirmation' }: ConfirmTexts,
): Promise<void> {
  const refuse = (message: string) =>
    new AppError('CONFIRMATION_REQUIRED', message, { details: { hint: unattended } });
  if (!context.stdin.isTTY || !context.output.stderr.isTTY) throw refuse(unasked);
  if (!/^y(es)?$/i.test(await ask(context, `${question} [y/N] `))) throw refuse(refused);
}
