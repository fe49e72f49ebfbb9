import { formatLogLine } from '@skerry/kit';
import { fieldsOf } from '@skerry/protocol/forms';

/** A line of a daemon's log, as its file or the journal has it. */
export interface LogLine {
  readonly daemon: string;
  /** Unix milliseconds; of a line without its own, those of the line before it. */
  readonly timeMs: number;
  readonly text: string;
}

/** Which lines are wanted of all logs together. */
export interface Wanted {
  /** Unix milliseconds; undefined: however old. */
  readonly sinceMs: number | undefined;
  /** The last so many. */
  readonly linesMax: number;
}

/** A record of a log (pino's); undefined where a line is none, such as one of a stack trace. Pure. */
function recordOf(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Unix milliseconds that a line says itself. Pure. */
export function timeOf(text: string): number | undefined {
  const time = recordOf(text)?.time;
  return typeof time === 'number' ? time : undefined;
}

/** For programs: the record as the daemon wrote it, and whose it is. Pure. */
export const viewOf = ({ daemon, timeMs, text }: LogLine) => ({
  ...(recordOf(text) ?? { time: timeMs, msg: text }),
  daemon,
});

/** Lines of several logs in the order in which they came, the last of them. Pure. */
export function mergeLines(logs: readonly (readonly LogLine[])[], { linesMax }: Wanted): LogLine[] {
  return logs
    .flat()
    .sort((a, b) => a.timeMs - b.timeMs)
    .slice(-linesMax);
}

const dayOf = (timeMs: number) => new Date(timeMs).toDateString();

/** Lines for people. Each shows the time of day alone, so a day that is not the one of the line before is said. */
export function createRenderer(colours: boolean, nowMs: number): (line: LogLine) => string {
  let day = dayOf(nowMs);
  return ({ daemon, timeMs, text }) => {
    const shown = formatLogLine(daemon, text, timeMs, colours);
    if (dayOf(timeMs) === day) return shown;
    day = dayOf(timeMs);
    return `-- ${day}\n${shown}`;
  };
}
