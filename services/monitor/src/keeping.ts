import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, type Keeping, makeDirectory, writeFileAtomically } from '@skerry/kit';
import type { MonitorConfig } from './config.ts';
import { windowAt } from './plan.ts';

const HOURS = 'hours';
const JOURNAL = /^[0-9]{1,16}\.jsonl$/;

/**
 * An hour is reported once. What was being measured at the backup was published since, and so, perhaps, was the present
 * hour: neither is measured again.
 */
async function closeHours(directory: string, config: MonitorConfig, nowMs: number): Promise<string[]> {
  const hours = join(directory, HOURS);
  const names = await readdir(hours).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  for (const name of names) if (JOURNAL.test(name)) await rm(join(hours, name));
  await makeDirectory(hours);
  const { startMs, endMs } = windowAt(nowMs, config.hourSeconds * 1000);
  await writeFileAtomically(join(hours, `${startMs}.done`), 'restored from a backup\n', 0o600);
  return [`measures again from ${new Date(endMs).toISOString()}: an hour is reported only once`];
}

/** What a monitor must not lose (docs/backup.md). */
export const monitorKeeping: Keeping<MonitorConfig> = {
  identity: 'key',
  entries: [
    { path: 'key', kind: 'secret', what: 'the key that readers of its measurements trust' },
    { path: 'hours/', kind: 'state', what: 'hours that are not published, and those that are' },
    { path: 'systems', kind: 'passing', what: 'a table that skerry up writes' },
  ],
  elsewhere: async ({ asnFile, caFile }) => [asnFile, caFile].filter((path) => path !== undefined),
  settle: closeHours,
};
