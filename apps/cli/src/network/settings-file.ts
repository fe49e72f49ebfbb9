import { readFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import { isMissing } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';

const TEXT_CHARS_MAX = 1024 * 1024;

/** A file of settings, `NAME=value` a line, as variables; undefined where it is not there. Throws INVALID_CONFIG. */
export async function readSettingsFile(path: string): Promise<Environment | undefined> {
  try {
    const text = await readFile(path, 'utf8');
    return parseEnv(text.slice(0, TEXT_CHARS_MAX)) as Environment;
  } catch (error) {
    if (isMissing(error)) return undefined;
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
