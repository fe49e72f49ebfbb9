import { isPublicAddress, urlOfListener } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { listOwnAddresses } from '../doctor/machine.ts';
import { ask } from '../question.ts';
import type { Answers } from './answers.ts';
import { ROLES, type Role } from './roles.ts';

/** What is asked of a person who did not say it by a flag. */

const canAsk = ({ stdin, output }: Pick<Context, 'stdin' | 'output'>) =>
  stdin.isTTY === true && output.stderr.isTTY === true && !output.json;

/** An empty answer is the suggestion. */
async function askWith(context: Context, question: string, suggestion = ''): Promise<string> {
  const shown = suggestion === '' ? '' : ` [${suggestion}]`;
  return (await ask(context, `${question}${shown}: `)) || suggestion;
}

export async function askRole(context: Context): Promise<Role> {
  if (!canAsk(context))
    throw new AppError('INVALID_PARAMETERS', `say what this server is to be: --role ${ROLES.join(', ')}`);
  const answer = await askWith(context, `What is this server to be (${ROLES.join(', ')})?`, 'compute');
  const role = ROLES.find((one) => one === answer);
  if (role === undefined)
    throw new AppError('INVALID_PARAMETERS', `there is no role ${JSON.stringify(answer)}`);
  return role;
}

const orNothing = (text: string) => (text === '' ? undefined : text);

/** Fills in what the flags left open, where there is somebody to ask. */
export async function askAnswers(
  context: Context,
  role: Role,
  answers: Answers,
  port: number,
): Promise<Answers> {
  if (!canAsk(context)) return answers;
  const own = listOwnAddresses().find(isPublicAddress);
  const suggested = own === undefined ? '' : urlOfListener('http', own, port);
  const url = async () => orNothing(await askWith(context, 'URL at which others reach this node', suggested));
  switch (role) {
    case 'compute':
      return {
        ...answers,
        announceUrl: answers.announceUrl ?? (await url()),
        prefix:
          answers.prefix ??
          orNothing(await askWith(context, 'IPv6 /64 that is routed to this server (empty: none)')),
      };
    case 'core':
      return { ...answers, announceUrl: answers.announceUrl ?? (await url()) };
    case 'gateway':
      return {
        ...answers,
        domain:
          answers.domain ?? orNothing(await askWith(context, 'Domain whose wildcard record leads here')),
      };
    default:
      return answers;
  }
}

/** Throws CONFIRMATION_REQUIRED where nobody can be asked, or the answer is no. */
export async function confirmPlan(context: Context, question: string): Promise<void> {
  const refuse = (message: string) =>
    new AppError('CONFIRMATION_REQUIRED', message, {
      details: { hint: 'look with --dry-run, then add --yes' },
    });
  if (!canAsk(context)) throw refuse('there is no terminal to ask for confirmation');
  if (!/^y(es)?$/i.test(await ask(context, `${question} [y/N]: `)))
    throw refuse('not confirmed; nothing was changed');
}
