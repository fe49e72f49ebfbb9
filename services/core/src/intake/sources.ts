import type { Client } from '@skerry/kit';
import { AppError, isClockFault, isLate, type VerifiedMessage } from '@skerry/protocol';
import type { ReadContentFile } from '../store/content-reader.ts';
import { acceptMessage } from './accept.ts';
import type { Accepted, Verdict } from './accepted.ts';
import type { Pipeline } from './pipeline/pipeline.ts';
import type { Waiting } from './pipeline/queue.ts';
import { acceptUnfit, withContentOf } from './stored.ts';
import type { Verifier } from './verify/verifier.ts';

/** Whoever brings messages, and what holds for them. */
export interface Source {
  /** Who brings a message says since when it is there; else this node's clock does. */
  readonly isDateBelieved: boolean;
  /** Other nodes hear of what is new from this one, by gossip. */
  readonly isPassedOn: boolean;
  /** What somebody asks for and what would be in vain is refused; what nodes pass on is in force elsewhere. */
  readonly isNew: boolean;
  /** Messages to one node alone are carried out, where they come by the door of their type. */
  readonly takesPrivate: boolean;
  /** Its word counts that a message was forgotten whose text is erased: no signature covers that. */
  readonly isErasureBelieved: boolean;
  /** One message at a time is verified before pages of them. */
  readonly isUrgent: boolean;
  /** What is not taken now is sent again, or comes by reconciliation: nothing is made of it while too much waits. */
  readonly comesAgain: boolean;
}

const NOTHING: Source = {
  isDateBelieved: false,
  isPassedOn: false,
  isNew: false,
  takesPrivate: false,
  isErasureBelieved: false,
  isUrgent: false,
  comesAgain: false,
};

export const SOURCES = {
  /** Somebody who waits for the answer. */
  client: { ...NOTHING, isPassedOn: true, isNew: true, takesPrivate: true, comesAgain: true },
  /** This node, of itself. */
  own: { ...NOTHING, isPassedOn: true },
  /** An archive that a chain names. */
  archive: { ...NOTHING, isPassedOn: true },
  /** A settled block, by which a message of an archive was there. */
  block: { ...NOTHING, isDateBelieved: true },
  /** A node that passes on what it just took. */
  gossip: { ...NOTHING, isUrgent: true, comesAgain: true },
  /** A node that nobody asked, with what this one lacks. */
  offer: { ...NOTHING, isPassedOn: true },
  /** A node of the settings, which is asked for what this one lacks. */
  peer: { ...NOTHING, isDateBelieved: true, isErasureBelieved: true },
} satisfies Record<string, Source>;

export interface IntakeOptions {
  readonly verifier: Verifier;
  readonly pipeline: Pick<Pipeline, 'submit' | 'put' | 'checkRoom' | 'touch'>;
  readonly readContentFile: ReadContentFile;
  /** Does what a private message asks of this node. @param client who sent it */
  readonly carryOut: (
    message: VerifiedMessage,
    client: Pick<Client, 'isExempt'> | undefined,
  ) => Promise<void>;
  /** Throws for what somebody asks for and what would be in vain, by what this node knows. */
  readonly checkNew: (accepted: Accepted) => Promise<void>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Why that may be wrong, in words; undefined where nothing says so. */
  readonly doubtClock?: (() => string | undefined) | undefined;
}

/**
 * How far ahead of this node's clock a date is believed to which it gives way: clocks that differ by more are not wrong by
 * accident.
 */
export const AHEAD_MAX_MS = 24 * 3_600_000;

export const secondsOf = ({ now }: Pick<IntakeOptions, 'now'>) => Math.floor(now() / 1000);

/**
 * What a file says that nobody can take is refused to whoever waits for an answer, and rejected where nodes pass its message on, as where
 * the file comes after the message: which came first decides nothing, and the sets of nodes are the same.
 */
function acceptFile(
  message: VerifiedMessage,
  bytes: Uint8Array,
  { isNew }: Source,
  nowSeconds: number,
): Accepted {
  try {
    const accepted = acceptMessage(withContentOf(message, bytes, nowSeconds), isNew);
    return { ...accepted, contentBytes: bytes.length };
  } catch (error) {
    if (isNew || !(error instanceof AppError) || isClockFault(error)) throw error;
    // Throws for what is refused whatever its file says, such as a private message.
    acceptMessage(message);
    return acceptUnfit(message, error);
  }
}

/** A message that says what it is about itself and that nobody waits for: nothing has to be read or asked before it is accepted. */
export const isAtHand = ({ content }: VerifiedMessage, { isNew }: Source): boolean =>
  content !== null && !isNew;

/** Accepts what is at hand. Throws what acceptMessage throws, and OVERLOADED. */
export function acceptAtHand(
  { comesAgain }: Source,
  message: VerifiedMessage,
  { pipeline }: Pick<IntakeOptions, 'pipeline'>,
): Accepted {
  if (comesAgain) pipeline.checkRoom();
  return acceptMessage(message);
}

/**
 * Reads the content of a verified message, from its file where it is one. Throws what acceptMessage and `hold` throw, and OVERLOADED.
 * @param hold told how many bytes the file has
 */
export async function acceptFrom(
  source: Source,
  message: VerifiedMessage,
  options: IntakeOptions,
  hold?: (bytes: number) => void,
): Promise<Accepted> {
  if (isAtHand(message, source)) return acceptAtHand(source, message, options);
  const { readContentFile, checkNew, pipeline } = options;
  const bytes = message.content === null ? await readContentFile(message.itemHash) : undefined;
  if (source.comesAgain) pipeline.checkRoom();
  if (bytes) hold?.(bytes.length);
  const accepted = bytes
    ? acceptFile(message, bytes, source, secondsOf(options))
    : acceptMessage(message, source.isNew);
  if (source.isNew) await checkNew(accepted);
  return accepted;
}

/**
 * A message says since when it is there: where the source is believed what that says, else that is now. Of an envelope only
 * where it is late: absence says that it came in time.
 * @param latestMs the latest that is believed
 */
function noted(accepted: Accepted, { isDateBelieved }: Source, nowMs: number, latestMs: number): Accepted {
  const { form, time, notedMs: said } = accepted.message;
  const isSilent = form === 'envelope' && said === undefined;
  if (isDateBelieved && isSilent) return accepted;
  const known = isDateBelieved ? Math.min(said ?? nowMs, latestMs) : nowMs;
  const notedMs = form !== 'envelope' || isLate({ time, notedMs: known }) ? known : undefined;
  return notedMs === said ? accepted : { ...accepted, message: { ...accepted.message, notedMs } };
}

/**
 * Whether a message is dated by this node's clock: by that it was kept no later, unless the node gave way to a date that its
 * clock has not reached.
 */
function isOwnDate({ message }: Accepted, { isDateBelieved }: Source, nowMs: number): boolean {
  const saidMs = message.notedMs ?? (message.form === 'envelope' ? 0 : Number.POSITIVE_INFINITY);
  return !isDateBelieved || saidMs > nowMs;
}

/** How a message is put before the node. @param overrules as `keepFrom` has it */
function weigh(
  source: Source,
  accepted: Accepted,
  nowMs: number,
  overrules: boolean,
): Pick<Waiting, 'accepted' | 'isPassedOn' | 'weight'> {
  const { isPassedOn } = source;
  if (overrules)
    return {
      accepted: noted(accepted, source, nowMs, nowMs + AHEAD_MAX_MS),
      isPassedOn,
      weight: 'overrules',
    };
  const weight = isOwnDate(accepted, source, nowMs) ? 'yields' : 'counts';
  return { accepted: noted(accepted, source, nowMs, nowMs), isPassedOn, weight };
}

/**
 * Puts a message before the node; resolves once its verdict is durable. Throws what Pipeline.submit throws.
 * @param overrules what is said of it that nothing covers counts, also against an earlier word of this node and its clock
 */
export function keepFrom(
  source: Source,
  given: Accepted,
  { pipeline, now }: IntakeOptions,
  overrules = false,
): Promise<Verdict> {
  const { accepted, ...options } = weigh(source, given, now(), overrules);
  return pipeline.submit(accepted, options);
}

/** The same for many that came together; resolves once all are durable. */
export const keepAllFrom = (
  source: Source,
  given: readonly Accepted[],
  { pipeline, now }: IntakeOptions,
  isOverruled: (accepted: Accepted) => boolean,
): Promise<void> =>
  new Promise((resolve, reject) => {
    let left = given.length;
    if (left === 0) resolve();
    const onKept = () => {
      if (--left === 0) resolve();
    };
    for (const one of given) {
      const { accepted, isPassedOn, weight } = weigh(source, one, now(), isOverruled(one));
      pipeline.put({ accepted, isPassedOn, weight, resolve: onKept, reject });
    }
  });
