import { AppError } from '@skerry/protocol';

/** Text of one answer. */
export const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** Refuses an answer that would be too much to hold at once. Throws LIST_TOO_COSTLY. @param of what it would be */
export function checkWeight(bytes: number, of: string): void {
  if (bytes <= ANSWER_BYTES_MAX) return;
  throw new AppError(
    'LIST_TOO_COSTLY',
    `this answer has more than ${ANSWER_BYTES_MAX / 1024 / 1024} MiB of ${of}; ask for less at a time`,
  );
}
