import type { ErrorKind } from '@skerry/protocol';

/** What a script may rely on (`skerry --help` lists it): the one place where a failure becomes an exit code. */
export const EXIT = { ok: 0, failed: 1, wrongUse: 2, notFound: 3, refused: 4, unavailable: 5 } as const;

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

export function exitCodeOf(kind: ErrorKind): number {
  return EXIT_OF_KIND[kind];
}
