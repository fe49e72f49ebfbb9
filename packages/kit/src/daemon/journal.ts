import { fstatSync } from 'node:fs';

/** Where a record of the log has its level: pino writes it first. */
const LEVEL = /^\{"level":(\d+)/;
/** From which level on a record has which priority (sd-daemon(3)): fatal, error, warn, info; below them, debug. */
const PRIORITIES = [
  [60, 2],
  [50, 3],
  [40, 4],
  [30, 6],
] as const;
const DEBUG = 7;
const ERROR = 3;
/** Of a line that is no record. */
const INFO_LEVEL = 30;

/** Whether systemd's journal reads a file descriptor: `JOURNAL_STREAM` names its device and inode (systemd.exec(5)). */
export function isJournal(fd: number, stream: string | undefined): boolean {
  if (!stream) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return stream === `${dev}:${ino}`;
  } catch {
    // It is closed: nobody reads it.
    return false;
  }
}

const withNumber = (priority: number, text: string) =>
  `<${priority}>${text.replaceAll('\n', `\n<${priority}>`)}`;

/**
 * Lines by which a record is told, each with its priority in front: the journal takes it off, and finds lines by it
 * (`journalctl --priority`).
 */
export function withPriority(record: string, text: string): string {
  const level = Number(LEVEL.exec(record)?.[1] ?? INFO_LEVEL);
  return withNumber(PRIORITIES.find(([from]) => level >= from)?.[1] ?? DEBUG, text);
}

/** A failure that is told beside the log, as before there is one: to the journal, each of its lines as an error. */
export const failureFor = (fd: number, stream: string | undefined, text: string): string =>
  isJournal(fd, stream) ? `${withNumber(ERROR, text.trimEnd())}\n` : text;
