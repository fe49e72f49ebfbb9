import { writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** How long a line may wait for a reader that does not keep up, before it is dropped: 200 times 5 ms. */
const ATTEMPTS_MAX = 200;
const ATTEMPT_MS = 5;

const clock = new Int32Array(new SharedArrayBuffer(4));
const wait = () => Atomics.wait(clock, 0, 0, ATTEMPT_MS);

/**
 * A file descriptor that log lines are written to at once, so that none is lost when the process ends. A reader that is
 * gone must not hold the process back: pino's own output tries for ever, also while the process exits.
 */
export function createLogOutput(fd: number): DestinationStream {
  let isGone = false;
  return {
    write(line) {
      const bytes = Buffer.from(line);
      let written = 0;
      for (let attempt = 0; attempt < ATTEMPTS_MAX && !isGone && written < bytes.length; attempt++) {
        try {
          written += writeSync(fd, bytes, written);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'EAGAIN') wait();
          else isGone = true;
        }
      }
    },
  };
}
