import { writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** How long a line may wait for a reader that does not keep up, before it is dropped: 200 times 5 ms. */
const ATTEMPTS_MAX = 200;
const ATTEMPT_MS = 5;
/** Nobody reads there any more, and nobody will. */
const GONE = new Set<string | undefined>(['EPIPE', 'EBADF']);
const WARN = 40;

const clock = new Int32Array(new SharedArrayBuffer(4));
const wait = () => Atomics.wait(clock, 0, 0, ATTEMPT_MS);

/** What a log says in the place of lines that it lacks, as one of its records. */
export const lostLinesRecord = (lines: number, nowMs: number): string =>
  JSON.stringify({
    ...{ level: WARN, time: nowMs, lines },
    msg: 'lines of this log were lost: its disk was full, or its reader did not keep up',
  });

/**
 * A file descriptor that log lines are written to at once, so that none is lost when the process ends. A reader that is
 * gone must not hold the process back: pino's own output tries for ever, also while the process exits. What cannot be written
 * now, as on a full disk, is lost, and the log says how many lines it lacks once it can be written again.
 *
 * @param format how a record becomes a line
 */
export function createLogOutput(
  fd: number,
  format: (record: string) => string = (record) => record,
): DestinationStream {
  let isGone = false;
  let isTorn = false;
  let lost = 0;

  /** Whether all of it was written. */
  const append = (line: string): boolean => {
    const bytes = Buffer.from(isTorn ? `\n${line}` : line);
    let written = 0;
    for (let attempt = 0; attempt < ATTEMPTS_MAX && written < bytes.length; attempt++) {
      try {
        written += writeSync(fd, bytes, written);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'EAGAIN') wait();
        else {
          isGone = GONE.has(code);
          break;
        }
      }
    }
    if (written > 0) isTorn = written < bytes.length;
    return written === bytes.length;
  };

  return {
    write(line) {
      if (isGone) return;
      const isComplete = lost === 0 || append(`${format(lostLinesRecord(lost, Date.now()))}\n`);
      if (isComplete) lost = 0;
      if (!isComplete || !append(line)) lost++;
    },
  };
}
