import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { isMissing, makeDirectory, writeFileAtomically } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';
import type { DaemonName } from '../network/daemon-names.ts';
import type { Output } from '../output/output.ts';
import type { Role } from './roles.ts';
import { mergeSettings } from './settings-text.ts';
import { waitUntil } from './wait.ts';

/** The service manager of the machine, and the settings that its units read. */

const run = promisify(execFile);
/** systemd(1): there while it manages the machine. */
const SYSTEMD = '/run/systemd/system';
/** Longer than a unit may take to stop, or to reload (TimeoutStartSec). */
const SYSTEMCTL_MS = 330_000;
/** Secrets may stand in it. */
const SETTINGS_MODE = 0o640;

export const unitOf = (role: DaemonName) => `skerry-${role}`;

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

/** Whether systemd manages this server and knows the daemon's unit. */
export async function hasUnit(role: DaemonName): Promise<boolean> {
  if (!(await stat(SYSTEMD).catch(() => undefined))) return false;
  return systemctl('cat', unitOf(role)).then(
    () => true,
    () => false,
  );
}

/** What systemctl puts in quotes is one variable, whose value has spaces or the like. */
const WORD = /"((?:[^"\\]|\\.)*)"|\S+/g;

/** Reads what `systemctl show` says of `Environment`. Pure. */
export function parseUnitEnvironment(text: string): Environment {
  const words = [...text.matchAll(WORD)].map(([word, quoted]) => quoted?.replace(/\\(.)/g, '$1') ?? word);
  return Object.fromEntries(
    words.flatMap((pair) => {
      const [, name, value] = /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(pair) ?? [];
      return name === undefined ? [] : [[name, value!]];
    }),
  );
}

/** Variables that a unit sets itself, such as where its data is. */
export async function readUnitEnvironment(role: DaemonName): Promise<Environment> {
  if (!(await hasUnit(role))) return {};
  return parseUnitEnvironment(await systemctl('show', '--property=Environment', '--value', unitOf(role)));
}

/** How a unit is. */
export interface UnitState {
  /** `active`, `activating`, `failed` and others (systemctl(1)). */
  readonly active: string;
  /** Another one at each start. */
  readonly invocation: string;
  /** How often systemd has started it again by itself. */
  readonly restarts: number;
  /** What the daemon says that it does. */
  readonly status: string;
}

const STATE_PROPERTIES = ['ActiveState', 'InvocationID', 'NRestarts', 'StatusText'] as const;

/** Reads lines of `systemctl show`. Pure. */
export function parseUnitState(text: string): UnitState {
  const value = (name: (typeof STATE_PROPERTIES)[number]) =>
    new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
  return {
    active: value('ActiveState'),
    invocation: value('InvocationID'),
    restarts: Number(value('NRestarts')) || 0,
    status: value('StatusText'),
  };
}

/** Whether a unit that was started serves. @param before what it was when it was started. Pure */
export function judgeStart(now: UnitState, before: UnitState): 'starting' | 'started' | 'failed' {
  const isNew = now.invocation !== before.invocation;
  if (now.active === 'failed' || (isNew && now.restarts > 0)) return 'failed';
  return isNew && now.active === 'active' ? 'started' : 'starting';
}

const readUnitState = async (role: Role) =>
  parseUnitState(await systemctl('show', `--property=${STATE_PROPERTIES.join(',')}`, unitOf(role)));

/**
 * Starts the unit, now and at every boot, and waits until it serves; one that runs reads its settings again. Throws DAEMON_FAILED with
 * the daemon's reason where its first try fails, TIMED_OUT.
 */
export async function startUnit(role: Role, output: Output, limitMs: number): Promise<void> {
  const unit = unitOf(role);
  await systemctl('enable', unit);
  await systemctl('reset-failed', unit).catch(() => {});
  const before = await readUnitState(role);
  // A successor takes its sockets, and what goes through it runs on.
  if (role === 'gateway' && before.active === 'active') {
    await systemctl('reload', unit);
    return;
  }
  await systemctl('restart', '--no-block', unit);
  await waitUntil(output, {
    what: `${unit} serves`,
    limitMs,
    hint: `see: journalctl -u ${unit}`,
    isOver: ({ isStarted }) => isStarted,
    async look() {
      const now = await readUnitState(role);
      const text = now.status || now.active;
      const start = judgeStart(now, before);
      if (start === 'failed')
        throw new AppError('DAEMON_FAILED', `${unit} does not start: ${text}`, {
          details: { hint: `see: journalctl -u ${unit}` },
        });
      return { text, isStarted: start === 'started' };
    },
  });
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
