import { setTimeout as pause } from 'node:timers/promises';
import { writeFileAtomically } from './atomic-file.ts';

/** Changes that follow each other are written once. */
const WRITE_EVERY_MS = 1_000;

/** A file that follows what it is made from. Disposing it writes what is not written yet; a kill loses the last second. */
export interface FollowedFile extends AsyncDisposable {
  /** What it is made from has changed. */
  changed(): void;
}

/**
 * @param textOf what the file is to have now
 * @param complain is told what kept it from being written; it is written again with the next change
 */
export function followInFile(
  path: string,
  textOf: () => string,
  complain: (error: unknown) => void,
): FollowedFile {
  const stop = new AbortController();
  const { signal } = stop;
  let writing: Promise<void> | undefined;
  let isChanged = false;
  const writeOnce = async () => {
    isChanged = false;
    await writeFileAtomically(path, textOf(), 0o600).catch(complain);
  };
  const write = async () => {
    while (isChanged && !signal.aborted) {
      await writeOnce();
      await pause(WRITE_EVERY_MS, undefined, { signal, ref: false }).catch(() => {});
    }
    writing = undefined;
  };
  return {
    changed() {
      isChanged = true;
      writing ??= write();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await writing;
      if (isChanged) await writeOnce();
    },
  };
}
