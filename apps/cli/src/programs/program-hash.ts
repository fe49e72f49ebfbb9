import { AppError, parseMessageHash } from '@skerry/protocol/forms';

/** The hash that a person named a program by. Names do not count: two programs may have one. Throws INVALID_HASH. */
export function parseProgramHash(text: string): string {
  try {
    return parseMessageHash(text).hash;
  } catch (error) {
    const { code, message } = error as AppError;
    throw new AppError(code, message, {
      cause: error,
      details: { hint: '"skerry program list" shows the hashes of your programs' },
    });
  }
}
