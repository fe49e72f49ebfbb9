import {
  ANY_TIME,
  AppError,
  fieldsOf,
  proveInstance,
  type VerifiedMessage,
  verifyShared,
} from '@skerry/protocol';
import type { JudgedFact } from './facts.ts';
import type { Judged } from './messages.ts';

/** Lines of lists that come with what proves them (`bodies=shared`): nothing is asked for again. */

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

function judgeMachine(row: unknown, schedulers: ReadonlySet<string>): JudgedMachine {
  const { shared, ...view } = fieldsOf(row);
  const { instance_id: id } = view;
  if (!Array.isArray(shared) || typeof id !== 'string')
    return { kind: 'said', why: 'this core node gives no messages with its machines' };
  const texts = shared.map((text: unknown) => (typeof text === 'string' ? text : null));
  const verdict = proveInstance({ view: { ...view, instance_id: id }, shared: texts }, schedulers);
  const { isWhole, differences, onBehalf, verified } = verdict;
  const [first] = differences;
  if (first)
    return {
      kind: 'wrong',
      why: `${first.name}: the core node says ${first.said}, signed was ${first.computed}`,
    };
  if (!isWhole) return { kind: 'said', why: 'some of its messages are too long for a list' };
  return onBehalf.length > 0
    ? { kind: 'said', why: `signed by ${onBehalf.join(', ')} for its owner, who may allow that` }
    : { kind: 'proven', why: `from ${verified} signed messages` };
}

/** Of each machine whether what is told of it follows from its messages, in the order that they are given. */
export function judgeMachines(rows: readonly unknown[], schedulers: readonly string[]): JudgedMachine[] {
  const believed = new Set(schedulers);
  return rows.map((row) => {
    try {
      return judgeMachine(row, believed);
    } catch (error) {
      return {
        kind: 'wrong',
        why: error instanceof AppError ? `${error.message} (${error.code})` : String(error),
      };
    }
  });
}
