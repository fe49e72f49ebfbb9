import { readFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import { isMissing } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';

const TEXT_CHARS_MAX = 1024 * 1024;

/** A line that sets something, a comment or none: what else there is, the parser would leave out without a word. */
const LINE = /^\s*(#.*|(export\s+)?[A-Za-z_]\w*\s*=.*)?$/;

/** Throws INVALID_CONFIG. The line is not repeated: it may be part of a secret. */
function parseSettings(path: string, text: string): Environment {
  const values = parseEnv(text) as Environment;
  const isLined = !Object.values(values).some((value) => value?.includes('\n'));
  const wrong = isLined ? text.split(/\r?\n/).findIndex((line) => !LINE.test(line)) : -1;
  if (wrong !== -1) throw new AppError('INVALID_CONFIG', `line ${wrong + 1} of ${path} is not NAME=value`);
  return values;
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
