import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fieldsOf } from '@skerry/protocol';
import { ControlGroup } from './control-group.ts';
import { isOfGuests, removeEmpty } from './guest-groups.ts';
import { readText } from './trees.ts';

/** Below the directory of programs: where this node's control groups are, for whoever comes after it in the same data folder. */
const NOTE = 'control-groups.json';
/** What a node's group is called. */
const NAME = /^skerry-[0-9a-z-]+$/;
/** Processes that were killed are dead within milliseconds, on a machine that is busy within seconds. */
const TURNS_MAX = 250;
const PAUSE_MS = 20;

const noteOf = (dataDir: string) => join(dataDir, 'programs', NOTE);

/** A folder that was copied is another one: what its note names belongs to the node that it was copied from. */
function folderOf(dataDir: string): string {
  const { dev, ino } = statSync(join(dataDir, 'programs'));
  return `${dev}:${ino}`;
}

/** Notes where groups are, before the first is made. A process that is started elsewhere would not look there. */
export function noteGroups(dataDir: string, homes: readonly string[]): void {
  mkdirSync(join(dataDir, 'programs'), { recursive: true });
  // With those that could not be taken away yet.
  const all = [...new Set([...readNoted(dataDir), ...homes])];
  writeFileSync(noteOf(dataDir), `${JSON.stringify({ folder: folderOf(dataDir), homes: all })}\n`);
}

function readNoted(dataDir: string): string[] {
  try {
    const { folder, homes } = fieldsOf(JSON.parse(readFileSync(noteOf(dataDir), 'utf8')));
    if (folder !== folderOf(dataDir) || !Array.isArray(homes)) return [];
    return homes.filter(
      (home) =>
        typeof home === 'string' && NAME.test(basename(home)) && existsSync(join(home, 'cgroup.procs')),
    );
  } catch {
    return [];
  }
}

/** Whether all of it is gone. What was killed a moment ago still holds its group. */
function tryClear(home: string): boolean {
  const version = existsSync(join(home, 'cgroup.controllers')) ? 2 : 1;
  try {
    for (const entry of readdirSync(home, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      const group = new ControlGroup([join(home, entry.name)], version);
      group.kill();
      group.remove();
    }
    rmdirSync(home);
    return true;
  } catch {
    return !existsSync(home);
  }
}

/** A process whose memory the kernel is taking back has no program any more: of a large guest that takes seconds, and its group is held as long. */
function isRunning(pid: string): boolean {
  try {
    // A process of another process namespace is told as 0.
    return pid === '0' || readlinkSync(`/proc/${pid}/exe`) !== '';
  } catch {
    return false;
  }
}

/** Whether a guest runs in one of the groups that are here: nothing but its own end takes its group away. */
function isInhabited(home: string): boolean {
  const groups = readdirSync(home, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return groups.some(({ name }) =>
    readText(join(home, name, 'cgroup.procs'))
      .split('\n')
      .filter(Boolean)
      .some(isRunning),
  );
}

/** Whether there is nothing to wait for: all of it is gone, or a guest, which outlives its node, keeps it. */
function isSettled(home: string): boolean {
  return isOfGuests(home) ? removeEmpty(home) || isInhabited(home) : tryClear(home);
}

/**
 * Ends what a node of this data folder left in its control groups when it was killed, and takes them away, wherever it was started; groups
 * whose guest runs stay. To be called where no node works in the folder.
 */
export async function clearLeftGroups(dataDir: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const noted = readNoted(dataDir);
  let left = noted;
  for (let turn = 0; left.length > 0 && turn < TURNS_MAX; turn++) {
    if (turn > 0) await setTimeout(PAUSE_MS);
    left = left.filter((home) => !isSettled(home));
  }
  if (!noted.some((home) => existsSync(home))) rmSync(noteOf(dataDir), { force: true });
}
