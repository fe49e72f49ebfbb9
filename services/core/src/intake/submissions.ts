import { type Client, type Held, LowPriority, Shares } from '@skerry/kit';
import { AppError, isClockFault, LIMITS, type VerifiedMessage } from '@skerry/protocol';
import { type Accepted, PROCESSED, type Verdict } from './accepted.ts';
import { PRIVATE_TYPES } from './kinds.ts';
import { acceptFrom, type IntakeOptions, keepFrom, type Source, secondsOf } from './sources.ts';

/** What the door wants of a message beside that it is one. */
export interface Wanted {
  /** The only type that it takes. A door that names none takes those of which messages are kept. */
  readonly type?: string;
  /** Throws where the message does not fit. */
  readonly check?: (message: VerifiedMessage) => void;
  /** Who brings it, for what is shared among clients; nobody in particular where left out. */
  readonly client?: Pick<Client, 'key' | 'isExempt'>;
}

export interface Submitted {
  readonly message: VerifiedMessage;
  readonly verdict: Verdict;
}

/** Messages as their signers send them, for somebody who waits: what fails is thrown. */
export interface Submissions {
  /** A signed request that is carried out and not kept. Throws what verifySubmission throws, and UNKNOWN_MESSAGE_TYPE. */
  verify(body: Uint8Array, type?: string): Promise<VerifiedMessage>;
  /** Verified, its content read; nothing of it is stored. For who has something to do before it is kept. */
  read(body: Uint8Array, type?: string): Promise<Accepted>;
  /** Resolves once the verdict is durable. */
  keep(accepted: Accepted): Promise<Verdict>;
  /** Somebody reads: what is submitted goes behind that for a while (LowPriority). */
  noteReader(): void;
  /** All of it at once. */
  submit(body: Uint8Array, wanted?: Wanted): Promise<Submitted>;
}

/** Control characters of ASCII and Latin-1 (C0, DEL, C1): they would end lines of logs and lists where a name is shown. */
const CONTROL = /\p{Cc}/u;

/**
 * Asked where signers send messages, and not where nodes pass them on: what another node took once is taken by all, so
 * that all have the same messages.
 */
export function checkChannel(channel: string | null): void {
  if (channel !== null && CONTROL.test(channel))
    throw new AppError(
      'INVALID_ENVELOPE',
      'message.channel must be printable text, without control characters',
    );
}

function checkType(message: VerifiedMessage, type: string): void {
  if (message.type === type) return;
  throw new AppError(
    'UNKNOWN_MESSAGE_TYPE',
    `this route takes messages of type ${type}, not ${JSON.stringify(message.type)}`,
  );
}

/** What is ahead of a clock that may be behind is refused with that: its sender's own may well be right. */
function withDoubt(error: unknown, doubt: string | undefined): unknown {
  if (!(error instanceof AppError) || !isClockFault(error) || doubt === undefined) return error;
  return new AppError(error.code, `${error.message}; ${doubt}`, { cause: error, details: error.details });
}

/** What is refused after its form is known says that form, as verifySubmission's own errors do. */
function withForm(error: unknown, { form }: VerifiedMessage): unknown {
  if (!(error instanceof AppError) || form !== 'network') return error;
  const details = { ...(error.details as object | undefined), form };
  return new AppError(error.code, error.message, { cause: error.cause, details });
}

/**
 * Contents that are files, from when they are read until their messages are decided: a few hundred bytes name four megabytes, and what
 * waits to be written is bounded for all. The messages themselves are bodies, which the door shares.
 */
const CONTENTS = { total: 64 * 1024 * 1024, reserve: 0, perClient: 2 * LIMITS.contentFileBytes };
/** Seconds. */
const RETRY_AFTER = 1;

/** Takes contents from their clients' shares. Throws RATE_LIMITED, OVERLOADED. */
class Contents {
  readonly #shares = new Shares(CONTENTS);

  take(client: Wanted['client'], bytes: number): Held {
    const held = client ? this.#shares.take(client, bytes) : NOTHING_HELD;
    if (typeof held !== 'string') return held;
    const details = { retry_after: RETRY_AFTER };
    throw held === 'share'
      ? new AppError(
          'RATE_LIMITED',
          `a client may have ${CONTENTS.perClient} bytes of contents that are files on their way at once`,
          { details },
        )
      : new AppError('OVERLOADED', 'too many contents that are files are on their way', { details });
  }
}

const NOTHING_HELD: Held = { release: () => {} };

export function takeSubmissions(source: Source, options: IntakeOptions): Submissions {
  const { verifier, carryOut } = options;
  const accept = (message: VerifiedMessage, hold?: (bytes: number) => void) =>
    acceptFrom(source, message, options, hold);
  const contents = new Contents();
  // A batch answers all of its messages at once, and a crowd sends as many: who reads meanwhile does not wait for them all.
  const low = new LowPriority();
  const keep = (accepted: Accepted) => keepFrom(source, accepted, options);
  const verify = async (body: Uint8Array, type?: string, from?: string) => {
    const verified = verifier.verify(body, secondsOf(options), from);
    const message = await verified.catch((error) => Promise.reject(withDoubt(error, options.doubtClock?.())));
    checkChannel(message.channel);
    if (type !== undefined) checkType(message, type);
    return message;
  };
  return {
    verify: (body, type) => verify(body, type),
    read: async (body, type) => accept(await verify(body, type)),
    keep,
    noteReader: () => low.note(),
    async submit(body, { type, check, client } = {}) {
      await low.turn();
      const message = await verify(body, type, client?.key);
      // A door for messages that everybody may see says nothing of what is carried out and not kept.
      if (source.takesPrivate && type !== undefined && PRIVATE_TYPES.includes(type)) {
        await carryOut(message, client);
        return { message, verdict: PROCESSED };
      }
      let held = NOTHING_HELD;
      try {
        const accepted = await accept(message, (bytes) => {
          held = contents.take(client, bytes);
        }).catch((error) => Promise.reject(withForm(error, message)));
        check?.(message);
        const verdict = await keep(accepted);
        await low.turn();
        return { message, verdict };
      } finally {
        held.release();
      }
    },
  };
}
