import { AppError, type ErrorCode, type ShortKey, shortKeyOf, type VerifiedMessage } from '@skerry/protocol';
import type { Accepted } from '../messages/accepted.ts';
import { acceptMessage } from '../messages/kinds.ts';
import type { Origin, Pipeline } from '../messages/pipeline.ts';
import { keyOfAccepted } from '../messages/statement.ts';
import { type ReadContentFile, withContent } from '../messages/stored.ts';
import { readVerdict, type Verifier } from '../verify/verifier.ts';
import { acceptErasedFrame, isErasedFrame } from './forgotten.ts';

/** What no honest node passes on: it verified the message before it kept it. */
const FORGED: readonly ErrorCode[] = [
  'INVALID_JSON',
  'INVALID_ENVELOPE',
  'INVALID_SIGNATURE',
  'SIGNATURE_REQUIRED',
  'INVALID_ADDRESS',
  'HASH_MISMATCH',
];
/** What another release may judge otherwise, or a node without this chain. */
const REFUSED: readonly ErrorCode[] = [
  'UNKNOWN_FIELD',
  'UNKNOWN_CHAIN',
  'UNKNOWN_MESSAGE_TYPE',
  'INVALID_CONTENT',
  'INVALID_HASH',
  'INVALID_PARAMETERS',
  'NOT_PERMITTED',
];

/** What a message was worth: `later` is one that is ahead of this node's clock. */
export type Worth = 'taken' | 'forged' | 'refused' | 'later';

/** Whose fault a failure is. Undefined: this node's own, and no reason to think ill of a peer. */
export function worthOf(error: unknown): Exclude<Worth, 'taken'> | undefined {
  if (!(error instanceof AppError)) return undefined;
  if (FORGED.includes(error.code)) return 'forged';
  if (error.code === 'TIMESTAMP_IN_FUTURE') return 'later';
  return REFUSED.includes(error.code) ? 'refused' : undefined;
}

export interface Taker {
  readonly verifier: Verifier;
  readonly pipeline: Pick<Pipeline, 'submit'>;
  readonly readContentFile: ReadContentFile;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** A message of a peer after verification; nothing of it is kept yet. */
export type Verified = { readonly accepted: Accepted } | { readonly worth: Exclude<Worth, 'taken'> };

export const shortKeyOfAccepted = (accepted: Accepted): ShortKey => shortKeyOf(keyOfAccepted(accepted));

const secondsOf = ({ now }: Taker) => Math.floor(now() / 1000);

async function accept(message: VerifiedMessage, taker: Taker): Promise<Accepted> {
  // Private messages have no business between nodes.
  if (message.type === 'WEBHOOK')
    throw new AppError('UNKNOWN_MESSAGE_TYPE', 'a webhook is shared with nobody');
  if (message.content !== null) return acceptMessage(message);
  return acceptMessage(await withContent(message, taker.readContentFile, secondsOf(taker)));
}

/**
 * Signatures of this chain may cover the envelope's time, which no node keeps once it knows the content's own. Such a
 * message cannot be verified any more by others, and the node that passes it on is not to blame.
 */
const TIMED_CHAIN = '"chain":"TEZOS"';
const mayCoverTime = (frame: Buffer) => frame.includes(TIMED_CHAIN);

/** Throws what is this node's own fault. */
async function judgeFrame(frame: Buffer, read: () => Promise<Accepted> | Accepted): Promise<Verified> {
  try {
    return { accepted: await read() };
  } catch (error) {
    const worth = worthOf(error);
    if (worth === undefined) throw error;
    return { worth: worth === 'forged' && mayCoverTime(frame) ? 'refused' : worth };
  }
}

/** Throws what is this node's own fault, OVERLOADED among it. */
export const verifyFrame = (frame: Buffer, taker: Taker): Promise<Verified> =>
  judgeFrame(frame, async () =>
    isErasedFrame(frame)
      ? acceptErasedFrame(frame)
      : accept(await taker.verifier.verifyShared(frame, secondsOf(taker)), taker),
  );

/** The same for many that came together, at a lower price for each. */
export async function verifyFrames(frames: readonly Buffer[], taker: Taker): Promise<Verified[]> {
  const signed = frames.filter((frame) => !isErasedFrame(frame));
  const verdicts = await taker.verifier.verifyAll(signed, secondsOf(taker));
  const verdictOf = new Map(signed.map((frame, at) => [frame, verdicts[at]!]));
  return Promise.all(
    frames.map((frame) =>
      judgeFrame(frame, () => {
        const verdict = verdictOf.get(frame);
        return verdict ? accept(readVerdict(verdict, frame), taker) : acceptErasedFrame(frame);
      }),
    ),
  );
}

export type Tally = Readonly<Record<Worth, number>>;
export const NO_TALLY: Tally = { taken: 0, forged: 0, refused: 0, later: 0 };

/** Keeps what passed; resolves when it is durable. @param isOverruled whose statement counts against this node's own */
export async function keepVerified(
  verified: readonly Verified[],
  { pipeline }: Taker,
  from: Origin,
  isOverruled: (accepted: Accepted) => boolean = () => false,
): Promise<Tally> {
  const tally = { ...NO_TALLY };
  await Promise.all(
    verified.map(async (one) => {
      if ('accepted' in one) await pipeline.submit(one.accepted, from, isOverruled(one.accepted));
      tally['accepted' in one ? 'taken' : one.worth]++;
    }),
  );
  return tally;
}

export const addTallies = (a: Tally, b: Tally): Tally => ({
  taken: a.taken + b.taken,
  forged: a.forged + b.forged,
  refused: a.refused + b.refused,
  later: a.later + b.later,
});
