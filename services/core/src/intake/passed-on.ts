import { Slots } from '@skerry/kit';
import { AppError, type ErrorCode, type ErrorKind, isClockFault } from '@skerry/protocol';
import type { ReadContentFile } from '../store/content-reader.ts';
import { fileKey } from '../store/dependency-keys.ts';
import type { Accepted } from './accepted.ts';
import { acceptErasedFrame, checkErased, erasedProof, isErasedFrame } from './erased.ts';
import {
  acceptAtHand,
  acceptFrom,
  type IntakeOptions,
  isAtHand,
  keepAllFrom,
  type Source,
  secondsOf,
} from './sources.ts';
import { readVerified, type VerifyResult } from './verify/verifier.ts';

/** What no honest node passes on: it verified the message before it kept it. */
const FORGED: readonly ErrorCode[] = [
  'INVALID_JSON',
  'INVALID_ENVELOPE',
  'INVALID_SIGNATURE',
  'SIGNATURE_REQUIRED',
  'INVALID_ADDRESS',
  'HASH_MISMATCH',
];
/** What says nothing of a message, but of this node. */
const OWN_KINDS: readonly ErrorKind[] = ['unavailable', 'internal'];

/** Why a message is not kept: `later` is one that is ahead of this node's clock. */
export type Fault = 'forged' | 'refused' | 'later';

/**
 * Whose fault a failure is. Undefined: this node's own, and no reason to think ill of a peer. What is neither may be judged
 * otherwise by another release, or by a node with this chain.
 */
function faultOf(error: unknown): Fault | undefined {
  if (!(error instanceof AppError) || OWN_KINDS.includes(error.kind)) return undefined;
  if (FORGED.includes(error.code)) return 'forged';
  return isClockFault(error) ? 'later' : 'refused';
}

/** A message that a node passed on, verified and read; nothing of it is kept yet. */
export type ReadFrame =
  | {
      readonly accepted: Accepted;
      /** Its content was not read, since there was too much beside it: it is decided again once it is kept. */
      readonly isContentLeft?: boolean;
    }
  | { readonly fault: Fault };

export type Tally = Readonly<Record<'taken' | Fault, number>>;
export const NO_TALLY: Tally = { taken: 0, forged: 0, refused: 0, later: 0 };

export const addTallies = (a: Tally, b: Tally): Tally => ({
  taken: a.taken + b.taken,
  forged: a.forged + b.forged,
  refused: a.refused + b.refused,
  later: a.later + b.later,
});

/** Messages as nodes pass them on (protocol's verifyShared): what fails is counted, and held against who sent it. */
export interface PassedOn {
  /** @param from who passes them on (Verifier). Throws what is this node's own fault, OVERLOADED among it. */
  read(frames: readonly Buffer[], from?: string): Promise<readonly ReadFrame[]>;
  /** Keeps what passed; resolves when it is durable. @param isOverruled whose statement counts against this node's own */
  keep(frames: readonly ReadFrame[], isOverruled?: (accepted: Accepted) => boolean): Promise<Tally>;
}

/**
 * Signatures of this chain may cover the time beside the content, which whoever passes a message on may have changed or
 * lost: such a message cannot be verified any more, and the node that passes it on is not to blame.
 */
const TIMED_CHAIN = '"chain":"TEZOS"';
const mayCoverTime = (frame: Buffer) => frame.includes(TIMED_CHAIN);

async function rate(frame: Buffer, read: () => Promise<Accepted> | Accepted): Promise<ReadFrame> {
  try {
    return { accepted: await read() };
  } catch (error) {
    const fault = faultOf(error);
    if (fault === undefined) throw error;
    return { fault: fault === 'forged' && mayCoverTime(frame) ? 'refused' : fault };
  }
}

/** Each by itself, before pages of others. */
const readUrgent = (frames: readonly Buffer[], source: Source, options: IntakeOptions, from?: string) =>
  Promise.all(
    frames.map((frame) =>
      rate(frame, async () =>
        acceptFrom(source, await options.verifier.verifyShared(frame, secondsOf(options), from), options),
      ),
    ),
  );

/** Of contents that are files, what is read for messages that came together: they are in memory until all are kept. */
const CONTENT_BYTES = 4 * 1024 * 1024;

/** Reads contents one after another, until they are too much together. @param leave told of each that is not read then */
function readUpTo(read: ReadContentFile, leave: (hash: string) => void): ReadContentFile {
  const turn = new Slots(1);
  let bytes = 0;
  return (hash) =>
    turn.run(async () => {
      if (bytes >= CONTENT_BYTES) {
        leave(hash);
        return undefined;
      }
      const content = await read(hash);
      bytes += content?.length ?? 0;
      return content;
    });
}

/** As `Promise.all`, which makes some objects for each item also where nothing is waited for. */
const awaitAll = async <T extends object>(items: readonly (T | Promise<T>)[]): Promise<readonly T[]> =>
  items.some((one) => one instanceof Promise) ? Promise.all(items) : (items as readonly T[]);

/** Accepts what is at hand at once: of thousands that come together nearly all are. */
function readOne(
  frame: Buffer,
  result: VerifyResult,
  source: Source,
  options: IntakeOptions,
): ReadFrame | Promise<ReadFrame> {
  try {
    const message = readVerified(result, frame);
    if (isAtHand(message, source)) return { accepted: acceptAtHand(source, message, options) };
    return rate(frame, () => acceptFrom(source, message, options));
  } catch (error) {
    return rate(frame, () => Promise.reject(error));
  }
}

/** The same for many that came together, at a lower price for each. */
async function readTogether(
  frames: readonly Buffer[],
  source: Source,
  given: IntakeOptions,
  from?: string,
): Promise<readonly ReadFrame[]> {
  const left = new Set<string>();
  const readContentFile = readUpTo(given.readContentFile, (hash) => left.add(hash));
  const options = { ...given, readContentFile };
  const results = await options.verifier.verifyAll(frames, secondsOf(options), from);
  const read = await awaitAll(frames.map((frame, at) => readOne(frame, results[at]!, source, options)));
  if (left.size === 0) return read;
  return read.map((one) =>
    'accepted' in one && left.has(one.accepted.message.itemHash) ? { ...one, isContentLeft: true } : one,
  );
}

/** What was erased and is passed on by somebody whose word does not count is of no use. */
async function readErased(
  frames: readonly Buffer[],
  { isErasureBelieved }: Source,
  options: IntakeOptions,
  from?: string,
): Promise<ReadFrame[]> {
  if (!isErasureBelieved) return frames.map(() => ({ fault: 'refused' }));
  const nowSeconds = secondsOf(options);
  const read = await Promise.all(
    frames.map((frame) => rate(frame, () => acceptErasedFrame(frame, nowSeconds))),
  );
  const proofs = read.map((one) => {
    const proof = 'accepted' in one ? erasedProof(one.accepted) : undefined;
    return proof === undefined ? undefined : Buffer.from(proof);
  });
  const proven = proofs.filter((proof) => proof !== undefined);
  if (proven.length === 0) return read;
  const results = await options.verifier.verifyAll(proven, nowSeconds, from);
  const resultOf = new Map(proven.map((proof, at) => [proof, results[at]!]));
  return Promise.all(
    read.map((one, at) => {
      const proof = proofs[at];
      if (proof === undefined || !('accepted' in one)) return one;
      return rate(proof, () => {
        checkErased(one.accepted, readVerified(resultOf.get(proof)!, proof));
        return one.accepted;
      });
    }),
  );
}

export const takePassedOn = (source: Source, options: IntakeOptions): PassedOn => ({
  async read(frames, from) {
    const signed = frames.filter((frame) => !isErasedFrame(frame));
    const erased = frames.filter(isErasedFrame);
    const read = source.isUrgent ? readUrgent : readTogether;
    if (erased.length === 0) return read(signed, source, options, from);
    const results = [
      ...(await read(signed, source, options, from)),
      ...(await readErased(erased, source, options, from)),
    ];
    const resultOf = new Map([...signed, ...erased].map((frame, at) => [frame, results[at]!]));
    return frames.map((frame) => resultOf.get(frame)!);
  },
  async keep(frames, isOverruled = () => false) {
    const tally = { ...NO_TALLY };
    const accepted: Accepted[] = [];
    const later: string[] = [];
    for (const one of frames) {
      tally['accepted' in one ? 'taken' : one.fault]++;
      if (!('accepted' in one)) continue;
      accepted.push(one.accepted);
      if (one.isContentLeft) later.push(fileKey(one.accepted.message.itemHash));
    }
    await keepAllFrom(source, accepted, options, isOverruled);
    if (later.length > 0) await options.pipeline.touch(later);
    return tally;
  },
});
