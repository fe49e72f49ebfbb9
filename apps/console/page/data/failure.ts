import { Unreadable } from '../pure/read.ts';

/** Why something cannot be shown: a code for programs, a sentence and, where there is one, what helps. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly remedy?: string | undefined;
}

export class AskFailure extends Error {
  readonly code: string;
  readonly remedy: string | undefined;

  constructor(code: string, message: string, remedy?: string) {
    super(message);
    this.code = code;
    this.remedy = remedy;
  }
}

export function failureOf(error: unknown): Failure {
  if (error instanceof AskFailure) return { code: error.code, message: error.message, remedy: error.remedy };
  if (error instanceof Unreadable)
    return {
      code: 'UNEXPECTED_ANSWER',
      message: `the answer cannot be read: ${error.message}`,
      remedy: 'The service may be of another version than this console.',
    };
  return { code: 'INTERNAL', message: error instanceof Error ? error.message : String(error) };
}
