import { type DaemonEvent, type DaemonName, formatLogLine } from '@skerry/devnet';
import type { Output } from '../output/output.ts';
import { renderDuration } from '../output/text.ts';

/** Tells people what a devnet does, line by line, on standard output; with --json, on standard error. */
export interface Terminal {
  say(text: string): void;
  readonly line: (name: DaemonName, line: string) => void;
  readonly event: (name: DaemonName, event: DaemonEvent) => void;
}

const WARN = 40;
const NAME = 'skerry';

/** The record of something that the devnet itself has to say of a daemon, in the shape of the daemons' own lines. */
function recordOf(name: DaemonName, event: DaemonEvent): { level: number; msg: string } {
  switch (event.kind) {
    case 'ready':
      return {
        level: 30,
        msg: `${[`${name} is ready after ${renderDuration(event.afterMs)}`, ...event.urls].join(' ')}`,
      };
    case 'ended': {
      const how = event.signal ?? `exit code ${event.code}`;
      const when = `${(event.restartAfterMs / 1000).toFixed(1)} s`;
      return { level: WARN, msg: `${name} exited (${how}); restarting it in ${when}` };
    }
    case 'failing':
      return { level: 50, msg: `${name} does not start up; still trying: ${event.why}` };
    case 'given-up':
      return { level: 50, msg: `${name} will not be restarted: ${event.why}` };
  }
}

/** What the daemons say of their readiness is told once, with the time that it took. */
const REPEATED =
  /^Server listening at |^(?:core(?:-\d)?|scheduler|compute|gateway|monitor|status|credit) is (?:ready|stopping)$/;

/** Whether people want to see a line. What is no record was not meant to happen, and is shown. */
export function isWorthShowing(line: string, quiet: boolean): boolean {
  if (line === '') return false;
  try {
    const { level = 0, msg = '' } = JSON.parse(line) as { level?: number; msg?: string };
    return level >= WARN || (!quiet && !REPEATED.test(msg));
  } catch {
    return true;
  }
}

export function createTerminal(output: Output, quiet: boolean): Terminal {
  const stream = output.json ? output.stderr : output.stdout;
  const colours = stream.isTTY === true && stream.hasColors();
  const write = (text: string) => stream.write(`${text}\n`);
  return {
    say: write,
    line(name, line) {
      if (isWorthShowing(line, quiet)) write(formatLogLine(name, line, Date.now(), colours));
    },
    event(name, event) {
      const record = JSON.stringify({ ...recordOf(name, event), time: Date.now() });
      if (quiet && event.kind === 'ready') return;
      write(formatLogLine(NAME, record, Date.now(), colours));
    },
  };
}
