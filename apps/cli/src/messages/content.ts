import { existsSync } from 'node:fs';
import { AppError, LIMITS, parseExactJson } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { readTextFile, readWhole } from '../files/read-text.ts';

const tooLarge = () =>
  new AppError('BODY_TOO_LARGE', `a message's content has at most ${LIMITS.jsonBodyBytes} bytes`);

/** An option whose value is JSON. */
export interface JsonOption {
  /** `--content` */
  readonly option: string;
  readonly given: string;
}

/** Whoever names a file without the sign for it is told the sign. */
const fileHint = (given: string) =>
  existsSync(given) ? { details: { hint: `${shellWord(`@${given}`)} reads the file of this name` } } : {};

/**
 * JSON, `@FILE`, or `-` for standard input, of which nothing would be lost.
 * @throws AppError INVALID_JSON, BODY_TOO_LARGE, INVALID_PARAMETERS (no such file)
 */
export async function readJson(
  { option, given }: JsonOption,
  stdin: AsyncIterable<Buffer | string>,
): Promise<unknown> {
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
    throw new AppError('INVALID_JSON', `${option} is not JSON: ${(error as Error).message}`, fileHint(given));
  }
}

/**
 * The same, of which only an object will do.
 * @throws AppError INVALID_CONTENT (not an object), and what readJson throws
 */
export async function readContent(
  option: JsonOption,
  stdin: AsyncIterable<Buffer | string>,
): Promise<Record<string, unknown>> {
  const value = await readJson(option, stdin);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AppError('INVALID_CONTENT', `${option.option} must be a JSON object`);
  return value as Record<string, unknown>;
}
