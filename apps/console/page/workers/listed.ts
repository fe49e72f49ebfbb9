import { type AloneBudget, proveToldInstance, READ_ALONE_MAX, UNPROVEN } from '@skerry/client';
import { ANY_TIME, AppError, fieldsOf, type VerifiedMessage, verifyShared } from '@skerry/protocol';
import { isOpen, type JudgedFact } from './facts.ts';
import type { Judged } from './messages.ts';

/** Lines of lists that come with what proves them (`bodies=shared`): only what is too long for that is asked for again. */

/** A message as a list or an event tells it. */
export interface ToldMessage {
  readonly item_hash: string;
  readonly sender: string;
  readonly type: string;
  readonly channel: string | null;
  /** Unix seconds, whole or with their fraction. */
  readonly time: number;
  /** The message as nodes pass it on. */
  readonly shared: string;
}

function differenceOf(told: ToldMessage, signed: VerifiedMessage): string | undefined {
  const { form, itemHash, sender, signedSender = sender, type, time, sentTime = time, channel } = signed;
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['hash', told.item_hash, itemHash],
    ['sender', told.sender.toLowerCase(), signedSender.toLowerCase()],
    ['type', told.type, type],
    ['time', Math.floor(told.time), Math.floor(sentTime)],
    // In the other forms nothing covers it.
    ['channel', told.channel, form === 'envelope' ? channel : told.channel],
  ];
  const found = pairs.find(([, one, other]) => one !== other);
  return found && `${found[0]}: the core node says ${String(found[1])}, signed was ${String(found[2])}`;
}

function judgeOne(told: ToldMessage): Judged {
  const itemHash = told.item_hash;
  try {
    const signed = verifyShared(told.shared, ANY_TIME);
    const message = differenceOf(told, signed);
    if (message !== undefined) return { itemHash, failure: { code: 'HASH_MISMATCH', message } };
    const { type: postType } = fieldsOf(signed.type === 'POST' ? signed.content : undefined);
    return { itemHash, failure: undefined, postType: typeof postType === 'string' ? postType : undefined };
  } catch (error) {
    const { code, message } =
      error instanceof AppError ? error : { code: 'INVALID_ENVELOPE', message: String(error) };
    return { itemHash, failure: { code, message } };
  }
}

/** Of each line whether its sender signed it as it is told, in the order that they are given. */
export const judgeListed = (rows: readonly ToldMessage[]): Judged[] => rows.map(judgeOne);

/** How far a machine follows from its messages. */
export type JudgedMachine = Pick<JudgedFact, 'kind' | 'why'>;

const textOrNull = (text: unknown) => (typeof text === 'string' ? text : null);

async function judgeMachine(
  coreUrl: string,
  row: unknown,
  schedulers: ReadonlySet<string>,
  budget: AloneBudget,
): Promise<JudgedMachine> {
  const { shared, sources, ...view } = fieldsOf(row);
  const { instance_id: id } = view;
  if (!Array.isArray(shared) || typeof id !== 'string')
    return { kind: 'said', why: 'this core node gives no messages with its machines' };
  const told = {
    ...{ ...view, instance_id: id, shared: shared.map(textOrNull) },
    ...(Array.isArray(sources) ? { sources: sources.map(String) } : {}),
  };
  const proof = await proveToldInstance({ coreUrl }, told, schedulers, budget);
  if (proof.kind === 'wrong') return { kind: 'wrong', why: `by the core node, ${proof.why}` };
  if (proof.kind === 'proven') return { kind: 'proven', why: `from ${proof.verified} signed messages` };
  const { reason, by } = proof;
  const why =
    reason === 'delegated'
      ? `signed by ${by.join(', ')} for its owner, who may allow that`
      : UNPROVEN[reason];
  return { kind: 'said', why };
}

const described = ({ message, code }: AppError) => `${message} (${code})`;

/** Of each machine whether what is told of it follows from its messages, in the order that they are given. */
export async function judgeMachines(
  coreUrl: string,
  rows: readonly unknown[],
  schedulers: readonly string[],
): Promise<JudgedMachine[]> {
  const believed = new Set(schedulers);
  const budget = { left: READ_ALONE_MAX };
  const judged: JudgedMachine[] = [];
  for (const row of rows) {
    try {
      judged.push(await judgeMachine(coreUrl, row, believed, budget));
    } catch (error) {
      if (!(error instanceof AppError)) judged.push({ kind: 'wrong', why: String(error) });
      // Who does not answer contradicts nobody.
      else if (isOpen(error)) judged.push({ kind: 'said', why: `not checked: ${described(error)}` });
      else judged.push({ kind: 'wrong', why: described(error) });
    }
  }
  return judged;
}
