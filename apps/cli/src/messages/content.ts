import { AppError, LIMITS, parseExactJson } from '@skerry/protocol/forms';
import { readTextFile, readWhole } from '../files/read-text.ts';

const tooLarge = () =>
  new AppError('BODY_TOO_LARGE', `a message's content has at most ${LIMITS.jsonBodyBytes} bytes`);

/**
 * JSON, `@FILE`, or `-` for standard input, of which nothing would be lost.
 * @throws AppError INVALID_JSON, BODY_TOO_LARGE, INVALID_PARAMETERS (no such file)
 */
export async function readJson(given: string, stdin: AsyncIterable<Buffer | string>): Promise<unknown> {
  const text =
    given === '-'
      ? String(await readWhole(stdin, LIMITS.jsonBodyBytes, tooLarge))
      : given.startsWith('@')
        ? await readTextFile(given.slice(1), LIMITS.jsonBodyBytes, tooLarge)
        : given;
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('INVALID_JSON', `the content is not JSON: ${(error as Error).message}`);
  }
}

/**
 * The value of `--content`.
 * @throws AppError INVALID_CONTENT (not an object), and what readJson throws
 */
export async function readContent(
  given: string,
  stdin: AsyncIterable<Buffer | string>,
): Promise<Record<string, unknown>> {
  const value = await readJson(given, stdin);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AppError('INVALID_CONTENT', 'the content of a message must be a JSON object');
  return value as Record<string, unknown>;
}
