import { clock } from '../format.ts';

interface Line {
  readonly atMs: number;
  readonly text: string;
}

/** Lines of a machine's console as a file has them: when each came, in UTC, and what it says. */
export const logText = (lines: readonly Line[]): string =>
  lines.map(({ atMs, text }) => `${new Date(atMs).toISOString()} ${text}\n`).join('');

/** The lines in which a text stands, in capitals or not, each with its time. */
export function findInLog(lines: readonly Line[], sought: string, zone: 'local' | 'utc'): readonly Line[] {
  const wanted = sought.toLowerCase();
  return lines
    .filter(({ text }) => text.toLowerCase().includes(wanted))
    .map(({ atMs, text }) => ({ atMs, text: `${clock(atMs, zone)}  ${text}` }));
}
