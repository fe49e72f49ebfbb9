import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { AppError, fieldsOf } from '@skerry/protocol/forms';
import { whenEnded } from '../interrupt.ts';
import type { Output } from '../output/output.ts';
import type { LogLine, Wanted } from './line.ts';

/** What systemd's journal has of daemons that are its units. */

const UNIT = /^skerry-(.+?)(?:\.service)?$/;

/** What journalctl(1) is asked for. Pure. */
export const journalArgs = (
  units: readonly string[],
  { sinceMs, linesMax }: Wanted,
  isFollowed: boolean,
): string[] => [
  ...units.map((unit) => `--unit=${unit}`),
  '--output=json',
  '--no-pager',
  `--lines=${linesMax}`,
  ...(sinceMs === undefined ? [] : [`--since=@${(sinceMs / 1_000).toFixed(3)}`]),
  ...(isFollowed ? ['--follow'] : []),
];

/** Text, or its bytes where it is not printable (journalctl(1), "json"). */
const textOf = (message: unknown): string =>
  Array.isArray(message) ? Buffer.from(message as number[]).toString('utf8') : String(message ?? '');

/** An entry as a line of a log; undefined where it is none. What systemd says of a unit is a line of its daemon, too. Pure. */
export function parseEntry(json: string): LogLine | undefined {
  try {
    const entry = fieldsOf(JSON.parse(json));
    const [, daemon] = UNIT.exec(String(entry.UNIT ?? entry._SYSTEMD_UNIT)) ?? [];
    const timeMs = Math.floor(Number(entry.__REALTIME_TIMESTAMP) / 1_000);
    if (daemon === undefined || !Number.isSafeInteger(timeMs)) return undefined;
    return { daemon, timeMs, text: textOf(entry.MESSAGE) };
  } catch {
    return undefined;
  }
}

export interface JournalOptions {
  readonly units: readonly string[];
  readonly wanted: Wanted;
  readonly isFollowed: boolean;
  readonly output: Output;
}

/** Gives the lines of the journal, the oldest first. Throws DAEMON_FAILED where it cannot be read. */
export async function readJournal(
  { units, wanted, isFollowed, output }: JournalOptions,
  print: (line: LogLine) => void,
): Promise<void> {
  const child = spawn('journalctl', journalArgs(units, wanted, isFollowed), {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  using _ = whenEnded(() => void child.kill());
  const ended = once(child, 'close') as Promise<[number | null]>;
  ended.catch(() => {});
  createInterface({ input: child.stdout }).on('line', (json) => {
    const line = parseEntry(json);
    if (line) print(line);
  });
  // Such as that only root sees all.
  let said = '';
  createInterface({ input: child.stderr }).on('line', (text) => {
    said = text;
    output.note(text);
  });
  const [code] = await ended.catch((error: Error): [number] => {
    said = error.message;
    return [1];
  });
  if (code !== 0)
    throw new AppError(
      'DAEMON_FAILED',
      `journalctl cannot read the journal: ${said || `it ended with ${code}`}`,
    );
}
