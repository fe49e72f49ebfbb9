import { type DaemonEvent, type DaemonName, recordOf } from '@skerry/devnet';
import { formatLogLine } from '@skerry/kit';
import type { Output } from '../output/output.ts';

/** Tells people what a devnet does, line by line, on standard output; with --json, as JSON on standard error. */
export interface Terminal {
  say(text: string): void;
  readonly line: (name: DaemonName, line: string) => void;
  readonly event: (name: DaemonName, event: DaemonEvent) => void;
}

const WARN = 40;
const NAME = 'skerry';

/** What the daemons say of their readiness is told once, with the time that it took. */
const REPEATED =
  /^Server listening at |^(?:core(?:-\d)?|scheduler|compute|gateway|monitor|status|credit) is (?:ready|stopping)$/;

/** What a network does again and again without anybody asking: it is in the log files. */
const ROUTINE =
  /^(?:packed messages into archives$|announced a credit state$|migrated the database$|starting an hour$|published the hour$)/;

/** How much is told: warnings only, what matters, or every line but repetitions. */
export type Detail = 'quiet' | 'usual' | 'verbose';

/** Whether people want to see a line. What is no record was not meant to happen, and is shown. */
export function isWorthShowing(line: string, detail: Detail): boolean {
  if (line === '') return false;
  try {
    const { level = 0, msg = '' } = JSON.parse(line) as { level?: number; msg?: string };
    if (level >= WARN) return true;
    return detail !== 'quiet' && !REPEATED.test(msg) && (detail === 'verbose' || !ROUTINE.test(msg));
  } catch {
    return true;
  }
}

/** A line of a daemon as a program gets it: its record, which says whose it is. */
function asRecord(name: DaemonName, line: string): string {
  try {
    return JSON.stringify({ ...(JSON.parse(line) as object), name });
  } catch {
    return JSON.stringify({ name, msg: line });
  }
}

/** With --json every line is JSON, like what is printed at the end. */
function createRecordTerminal({ stderr }: Output, detail: Detail): Terminal {
  const write = (text: string) => stderr.write(`${text}\n`);
  return {
    say: (msg) => write(JSON.stringify({ name: NAME, msg })),
    line(name, line) {
      if (isWorthShowing(line, detail)) write(asRecord(name, line));
    },
    event: (name, event) => write(JSON.stringify({ ...recordOf(name, event), time: Date.now(), name: NAME })),
  };
}

/** How a daemon tells, without a log, why it ends: it goes on in lines that are no records. */
const TOLD = 'error: ';
const TOLD_LINES_MAX = 50;

/**
 * Why a daemon is given up is told once: with that it is, or, of the first core node before it serves, at the end of the
 * command, which there is nothing without.
 */
function tellOnce(terminal: Terminal): Terminal {
  const held = new Map<DaemonName, string[]>();
  const served = new Set<DaemonName>();
  const letGo = (name: DaemonName) => {
    for (const line of held.get(name) ?? []) terminal.line(name, line);
    held.delete(name);
  };
  return {
    say: terminal.say,
    line(name, line) {
      const lines = held.get(name);
      const isPart = line.startsWith(TOLD) || (lines !== undefined && !line.startsWith('{'));
      if (isPart && (lines?.length ?? 0) < TOLD_LINES_MAX) {
        held.set(name, [...(lines ?? []), line]);
        return;
      }
      letGo(name);
      terminal.line(name, line);
    },
    event(name, event) {
      if (event.kind === 'ready') served.add(name);
      if (event.kind === 'given-up') held.delete(name);
      else letGo(name);
      if (event.kind !== 'given-up' || name !== 'core' || served.has(name)) terminal.event(name, event);
    },
  };
}

export const createTerminal = (output: Output, detail: Detail): Terminal =>
  tellOnce(output.json ? createRecordTerminal(output, detail) : createPeopleTerminal(output, detail));

function createPeopleTerminal(output: Output, detail: Detail): Terminal {
  const { stdout } = output;
  const colours = stdout.isTTY === true && stdout.hasColors();
  const write = (text: string) => stdout.write(`${text}\n`);
  return {
    say: write,
    line(name, line) {
      if (isWorthShowing(line, detail)) write(formatLogLine(name, line, Date.now(), colours));
    },
    event(name, event) {
      const record = JSON.stringify({ ...recordOf(name, event), time: Date.now() });
      if (detail === 'quiet' && event.kind === 'ready') return;
      write(formatLogLine(NAME, record, Date.now(), colours));
    },
  };
}
