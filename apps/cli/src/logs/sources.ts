import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { findClosest } from '@skerry/kit';
import { isMissing } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { hasUnit, unitOf } from '../joining/units.ts';
import { DAEMON_NAMES } from '../network/daemon-names.ts';
import { listLocalDirs } from '../networks/local.ts';

/** Where daemons of this computer log: a unit to the journal, one of "skerry up" to a file. */

export type Source =
  | { readonly daemon: string; readonly kind: 'journal'; readonly unit: string }
  | { readonly daemon: string; readonly kind: 'file'; readonly path: string };

const LOG = /^([a-z]+(?:-[0-9]+)?)\.log$/;

async function listFiles(dataDir: string): Promise<Source[]> {
  const dir = join(dataDir, 'logs');
  const names = await readdir(dir).catch((error: unknown): string[] => {
    if (isMissing(error)) return [];
    throw error;
  });
  return names.flatMap((name): Source[] => {
    const [, daemon] = LOG.exec(name) ?? [];
    return daemon === undefined ? [] : [{ daemon, kind: 'file', path: join(dir, name) }];
  });
}

async function listUnits(): Promise<Source[]> {
  const there = await Promise.all(DAEMON_NAMES.map(hasUnit));
  return DAEMON_NAMES.filter((_, at) => there[at]).map((daemon) => ({
    ...{ daemon, kind: 'journal' as const },
    unit: unitOf(daemon),
  }));
}

/** Of the first network that has logs: the one that runs, else the one that ran last. */
async function listDevnet({ paths }: Pick<Context, 'paths'>): Promise<Source[]> {
  for (const place of await listLocalDirs(paths.data)) {
    const files = await listFiles(place);
    if (files.length > 0) return files;
  }
  return [];
}

/** Every log of this computer, each daemon once: a unit before a daemon of "skerry up". @param dataDir of a network that alone is meant */
export async function listSources(
  context: Pick<Context, 'paths'>,
  dataDir: string | undefined,
): Promise<Source[]> {
  if (dataDir !== undefined) return listFiles(resolve(dataDir));
  const units = await listUnits();
  const files = await listDevnet(context);
  return [...units, ...files.filter(({ daemon }) => !units.some((unit) => unit.daemon === daemon))];
}

/** The logs of some daemons, of all where none is named. Pure. Throws INVALID_PARAMETERS, NODE_NOT_FOUND. */
export function chooseSources(sources: readonly Source[], names: readonly string[]): readonly Source[] {
  if (sources.length === 0)
    throw new AppError('NODE_NOT_FOUND', 'no daemon of this computer has a log', {
      details: {
        hint: '"skerry up" starts a network, whose daemons have; a daemon that was started by hand logs where it runs',
      },
    });
  const known = sources.map(({ daemon }) => daemon);
  for (const name of names)
    if (!known.includes(name))
      throw new AppError(
        'INVALID_PARAMETERS',
        `${describeLog(name, known)}: there are logs of ${known.join(', ')}`,
      );
  return names.length === 0 ? sources : sources.filter(({ daemon }) => names.includes(daemon));
}

const describeLog = (name: string, known: readonly string[]) => {
  if ((DAEMON_NAMES as readonly string[]).includes(name)) return `${name} has no log here`;
  const meant = findClosest(name, known);
  return `no daemon is called ${JSON.stringify(name)}${meant === undefined ? '' : `, did you mean ${meant}?`}`;
};
