import { readFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import { isMissing } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';

const TEXT_CHARS_MAX = 1024 * 1024;

/** A line that sets something, a comment or none: what else there is, the parser would leave out without a word. */
const LINE = /^\s*(#.*|(export\s+)?[A-Za-z_]\w*\s*=.*)?$/;
/** A value in quotes, which may go over several lines. */
const QUOTED = /^([^\S\n]*(?:export[^\S\n]+)?[A-Za-z_]\w*[^\S\n]*=[^\S\n]*)("[^"]*"|'[^']*'|`[^`]*`)/gm;
/** A setting whose value has no end in its line: no setting has several. */
const UNCLOSED = /^\s*(?:export\s+)?(SKERRY_\w+|DATABASE_(?:READ_)?URL)\s*=\s*(["'`])(?!.*\2)/;
/** Begins a line of a value, which sets nothing. */
const WITHIN = '#\uE000';
/** One that looks as if it did: a quote before it was not closed. */
const TAKEN_IN = new RegExp(`^${WITHIN}\\s*(?:export\\s+)?(SKERRY_\\w+)\\s*=`);

/** Throws INVALID_CONFIG. What is wrong is not repeated: it may be part of a secret. */
function checkLines(path: string, text: string): void {
  const lines = text
    .replaceAll('\r\n', '\n')
    .replace(QUOTED, (_, begin: string, value: string) => begin + value.replaceAll('\n', `\n${WITHIN}`))
    .split('\n');
  for (const [at, line] of lines.entries()) {
    const where = `line ${at + 1} of ${path}`;
    if (!LINE.test(line)) throw new AppError('INVALID_CONFIG', `${where} is not NAME=value`);
    const [, open] = UNCLOSED.exec(line) ?? [];
    if (open !== undefined)
      throw new AppError('INVALID_CONFIG', `${where}: the quotes of ${open} are not closed`);
    const [, taken] = TAKEN_IN.exec(line) ?? [];
    if (taken !== undefined)
      throw new AppError(
        'INVALID_CONFIG',
        `${where}: ${taken} stands within quotes that were not closed before`,
      );
  }
}

/** Throws INVALID_CONFIG. */
function parseSettings(path: string, text: string): Environment {
  checkLines(path, text);
  return parseEnv(text) as Environment;
}

/** A file of settings, `NAME=value` a line, as variables; undefined where it is not there. Throws INVALID_CONFIG. */
export async function readSettingsFile(path: string): Promise<Environment | undefined> {
  try {
    const text = await readFile(path, 'utf8');
    return parseSettings(path, text.slice(0, TEXT_CHARS_MAX));
  } catch (error) {
    if (isMissing(error)) return undefined;
    if (error instanceof AppError) throw error;
    throw new AppError('INVALID_CONFIG', `cannot read ${path} (${(error as NodeJS.ErrnoException).code})`, {
      cause: error,
    });
  }
}

/** The environment above a file of settings, which must be there if one is named. Throws INVALID_CONFIG. */
export async function withSettings(environment: Environment, path: string | undefined): Promise<Environment> {
  if (path === undefined) return environment;
  const given = await readSettingsFile(path);
  if (given === undefined) throw new AppError('INVALID_CONFIG', `there is no settings file ${path}`);
  return { ...given, ...environment };
}
