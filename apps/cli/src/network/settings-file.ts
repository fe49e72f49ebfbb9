import { readFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import { describeUnknown, findClosest } from '@skerry/kit';
import { isMissing } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import { COMMAND_VARIABLES, type Environment } from '../config.ts';
import { DAEMON_NAMES } from './daemon-names.ts';

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

/** What is set for every service, and for the command. */
const COMMON = ['SKERRY_HOME', 'SKERRY_LOG_LEVEL', 'SKERRY_LOG_FORMAT', ...Object.values(COMMAND_VARIABLES)];
/** One file may be several services'; each checks what begins with its own name. */
const ANY_SERVICE = new RegExp(`^SKERRY_(${DAEMON_NAMES.join('|').toUpperCase()})_`);

/**
 * Names that are nobody's, or that one letter or two keep from being a setting of the service: what reads the file would leave them
 * out without a word. The environment is not judged so: much in it is not for us. Pure.
 */
export function findMistyped(names: readonly string[], known: readonly string[]): string[] {
  const all = [...known, ...COMMON];
  return names
    .filter((name) => !all.includes(name) && !ANY_SERVICE.test(name))
    .filter((name) => name.startsWith('SKERRY_') || findClosest(name.toUpperCase(), known) !== undefined)
    .map((name) => describeUnknown(name, all));
}

/**
 * The environment above a file of settings, which must be there if one is named.
 *
 * @param known what the service reads
 * @throws AppError INVALID_CONFIG
 */
export async function withSettings(
  environment: Environment,
  path: string | undefined,
  known: readonly string[],
): Promise<Environment> {
  if (path === undefined) return environment;
  const given = await readSettingsFile(path);
  if (given === undefined) throw new AppError('INVALID_CONFIG', `there is no settings file ${path}`);
  const problems = findMistyped(Object.keys(given), known);
  if (problems.length > 0)
    throw new AppError('INVALID_CONFIG', problems.map((one) => `${path}: ${one}`).join('\n'), {
      details: { problems },
    });
  return { ...given, ...environment };
}
