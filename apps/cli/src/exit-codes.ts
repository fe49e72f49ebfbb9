import type { ErrorCode, ErrorKind } from '@skerry/protocol';

/** What a script may rely on (`skerry --help` lists it): the one place where a failure becomes an exit code. */
export const EXIT = {
  ok: 0,
  failed: 1,
  wrongUse: 2,
  notFound: 3,
  refused: 4,
  unavailable: 5,
  program: 6,
  /** As a shell says of what SIGINT ended. */
  interrupted: 130,
} as const;

const EXIT_OF_KIND: Readonly<Record<ErrorKind, number>> = {
  invalid: EXIT.wrongUse,
  too_large: EXIT.wrongUse,
  missing: EXIT.notFound,
  unauthorized: EXIT.refused,
  refused: EXIT.refused,
  unavailable: EXIT.unavailable,
  conflict: EXIT.failed,
  internal: EXIT.failed,
};

/** What a program of a user's did wrong: the network did what it was asked for. */
const OF_PROGRAMS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'PROGRAM_FAILED',
  'PROGRAM_CRASHED',
  'PROGRAM_OUTPUT_TOO_LARGE',
  'PROGRAM_TIMED_OUT',
]);

export function exitCodeOf({ code, kind }: { readonly code: ErrorCode; readonly kind: ErrorKind }): number {
  if (code === 'INTERRUPTED') return EXIT.interrupted;
  return OF_PROGRAMS.has(code) ? EXIT.program : EXIT_OF_KIND[kind];
}
