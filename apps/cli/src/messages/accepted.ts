import { AppError } from '@skerry/protocol/forms';
import { lostMessageOf } from '../failure.ts';
import { whenEnded } from '../interrupt.ts';
import type { Output } from '../output/output.ts';
import { jsonText } from '../output/text.ts';

/** A message that the node has accepted: from then on, what it asks for happens whatever becomes of the command. */
export interface Accepted {
  /** What is so now: `instance 1234… was created`. */
  readonly what: string;
  /** What names it, as fields for programs. */
  readonly ids: Readonly<Record<string, string>>;
  /** What to do instead of sending it again. */
  readonly hint: string;
}

/** A bug keeps its stack; what the system refuses says it itself. */
const sentenceOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error instanceof AppError || 'syscall' in error ? error.message : (error.stack ?? error.message);
};

/** While it is open, Ctrl-C says what becomes of what was asked for, instead of ending without a word. */
function tellOnInterrupt({ stderr, json }: Output, { what, ids, hint }: Accepted): Disposable {
  return whenEnded(() => {
    const error = `${what}, and nobody waits for it any more`;
    const body = { error, status: 'error', code: 'INTERRUPTED', details: { ...ids, hint }, hint };
    stderr.write(json ? `${jsonText(body)}\n` : `\n${error}\nhint: ${hint}\n`);
  });
}

/**
 * Does what follows once a message was accepted. Where that fails, or Ctrl-C ends it, it is said what was done all the same: whoever
 * reads of the failure alone sends the message again. Where another message was sent since, whose answer was lost, the failure names that
 * one and its hint speaks of it: whoever does the same again makes it twice.
 */
export async function afterAccepted<T>(
  output: Output,
  accepted: Accepted,
  follow: () => Promise<T>,
): Promise<T> {
  const { what, ids, hint } = accepted;
  using _ = tellOnInterrupt(output, accepted);
  try {
    return await follow();
  } catch (error) {
    const { code, details } = error instanceof AppError ? error : { code: 'INTERNAL' as const, details: {} };
    const lost = lostMessageOf({ code, details });
    const told = { ...(details as object | undefined), ...ids };
    throw new AppError(code, `${what}, but ${sentenceOf(error)}`, {
      cause: error,
      details: lost === undefined ? { hint, ...told } : { ...told, item_hash: lost },
    });
  }
}
