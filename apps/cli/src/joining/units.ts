import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { isMissing, makeDirectory, writeFileAtomically } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';
import type { Role } from './roles.ts';
import { mergeSettings } from './settings-text.ts';

/** The service manager of the machine, and the settings that its units read. */

const run = promisify(execFile);
/** systemd(1): there while it manages the machine. */
const SYSTEMD = '/run/systemd/system';
/** A start waits for readiness: migrations take their time. */
const SYSTEMCTL_MS = 330_000;
/** Secrets may stand in it. */
const SETTINGS_MODE = 0o640;

export const unitOf = (role: Role) => `skerry-${role}`;

async function systemctl(...args: string[]): Promise<string> {
  try {
    return (await run('systemctl', args, { timeout: SYSTEMCTL_MS })).stdout;
  } catch (error) {
    const { stderr = '', message } = error as { stderr?: string; message: string };
    throw new AppError('DAEMON_FAILED', `systemctl ${args.join(' ')}: ${stderr.trim() || message}`, {
      details: { hint: `see: journalctl -u ${args.at(-1)}` },
    });
  }
}

/** Whether systemd manages this machine and knows the role's unit. */
export async function hasUnit(role: Role): Promise<boolean> {
  if (!(await stat(SYSTEMD).catch(() => undefined))) return false;
  return systemctl('cat', unitOf(role)).then(
    () => true,
    () => false,
  );
}

/** Variables that a unit sets itself, such as where its data is. */
export async function readUnitEnvironment(role: Role): Promise<Environment> {
  if (!(await hasUnit(role))) return {};
  const text = await systemctl('show', '--property=Environment', '--value', unitOf(role));
  return Object.fromEntries(
    text
      .trim()
      .split(/\s+/)
      .flatMap((pair) => {
        const [, name, value] = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(pair) ?? [];
        return name === undefined ? [] : [[name, value!]];
      }),
  );
}

/** Starts the unit, now and at every boot; one that runs reads its settings again. */
export async function startUnit(role: Role): Promise<void> {
  await systemctl('enable', unitOf(role));
  await systemctl('restart', unitOf(role));
}

export const stopUnit = (role: Role) => systemctl('disable', '--now', unitOf(role));

/** Sets variables in a settings file, and leaves the rest of it. Throws INVALID_CONFIG. */
export async function writeSettings(
  path: string,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  try {
    const { text, mode } = await readFile(path, 'utf8').then(
      async (found) => ({ text: found, mode: (await stat(path)).mode & 0o777 }),
      (error: unknown) => {
        if (isMissing(error)) return { text: '', mode: SETTINGS_MODE };
        throw error;
      },
    );
    const merged = mergeSettings(text, variables);
    if (merged === text) return;
    await makeDirectory(dirname(path));
    await writeFileAtomically(path, merged, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof AppError) throw error;
    throw new AppError('INVALID_CONFIG', `cannot write ${path} (${code}); run this as root (sudo)`, {
      cause: error,
    });
  }
}
