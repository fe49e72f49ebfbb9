import { Unreadable } from '../pure/read.ts';

/** Why something cannot be shown: a code for programs, a sentence and, where there is one, what helps. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly remedy?: string | undefined;
  /** When the service may be asked again, where it says so. */
  readonly retryMs?: number | undefined;
}

export class AskFailure extends Error {
  readonly code: string;
  readonly remedy: string | undefined;
  readonly retryMs: number | undefined;

  constructor(code: string, message: string, remedy?: string, retryMs?: number) {
    super(message);
    this.code = code;
    this.remedy = remedy;
    this.retryMs = retryMs;
  }
}

const RETRY_MS_MAX = 30_000;

/** How long until something is asked for again: as often as it is wanted, and no sooner than the service said. */
export const pauseAfter = (failure: Failure | undefined, everyMs: number): number =>
  Math.max(failure?.retryMs ?? 0, Math.min(everyMs, RETRY_MS_MAX));

export function failureOf(error: unknown): Failure {
  if (error instanceof AskFailure) {
    const { code, message, remedy, retryMs } = error;
    return { code, message, remedy, retryMs };
  }
  if (error instanceof Unreadable)
    return {
      code: 'UNEXPECTED_ANSWER',
      message: `the answer cannot be read: ${error.message}`,
      remedy: 'The service may be of another version than this console.',
    };
  return { code: 'INTERNAL', message: error instanceof Error ? error.message : String(error) };
}
