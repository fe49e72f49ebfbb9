import { AppError, type VerifiedMessage } from '@skerry/protocol';
import type { Verifier } from '../verify/verifier.ts';
import type { Accepted } from './accepted.ts';
import type { Outcome } from './judged.ts';
import { acceptMessage } from './kinds.ts';
import type { Origin, Pipeline } from './pipeline.ts';
import { type ReadContentFile, withContent } from './stored.ts';

/** The way of a message into the node: verify, read, then decide and write with others. */
export interface Intake {
  /** Throws what verifySubmission throws. */
  verify(body: Uint8Array): Promise<VerifiedMessage>;
  /** Malformed contents end here, with an error; nothing of them is stored. */
  accept(message: VerifiedMessage): Promise<Accepted>;
  /** Resolves once the verdict is durable. */
  submit(accepted: Accepted, from?: Origin): Promise<Outcome>;
}

/** Control characters of ASCII and Latin-1 (C0, DEL, C1): they would end lines of logs and lists where a name is shown. */
const CONTROL = /\p{Cc}/u;

/**
 * Asked where clients send messages, and not where nodes pass them on: what another node took once is taken by all, so
 * that all have the same messages.
 */
export function checkChannel(channel: string | null): void {
  if (channel !== null && CONTROL.test(channel))
    throw new AppError(
      'INVALID_ENVELOPE',
      'message.channel must be printable text, without control characters',
    );
}

export function createIntake(options: {
  readonly verifier: Verifier;
  readonly pipeline: Pipeline;
  readonly readContentFile: ReadContentFile;
  readonly now: () => number;
}): Intake {
  const { verifier, pipeline, readContentFile, now } = options;
  const nowSeconds = () => Math.floor(now() / 1000);
  return {
    async verify(body) {
      const message = await verifier.verify(body, nowSeconds());
      checkChannel(message.channel);
      return message;
    },
    accept: async (message) => acceptMessage(await withContent(message, readContentFile, nowSeconds())),
    submit: (accepted, from) => pipeline.submit(accepted, from),
  };
}

/** For doors that take one type of message only. */
export function checkType(message: VerifiedMessage, type: string): void {
  if (message.type === type) return;
  throw new AppError(
    'UNKNOWN_MESSAGE_TYPE',
    `this path takes messages of type ${type}, not ${JSON.stringify(message.type)}`,
  );
}
