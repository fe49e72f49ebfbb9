import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { lostLinesRecord } from '@skerry/kit';

const FILE_BYTES_MAX = 10 * 1024 * 1024;
const FILES_KEPT = 3;

export interface LogFile extends Disposable {
  write(line: string): void;
}

/** Some file systems say only now that they had no room. */
function closeQuietly(fd: number | undefined): void {
  try {
    if (fd !== undefined) closeSync(fd);
  } catch {
    // What was written of it is all there is.
  }
}

function renameIfAny(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** `core.log` becomes `core.log.1`, and so on. @returns the new file, which is there before the others move */
function rotate(path: string): number {
  const next = `${path}.next`;
  const fd = openSync(next, 'a', 0o600);
  try {
    for (let age = FILES_KEPT - 1; age >= 1; age--)
      renameIfAny(age === 1 ? path : `${path}.${age - 1}`, `${path}.${age}`);
    renameSync(next, path);
  } catch (error) {
    closeQuietly(fd);
    throw error;
  }
  return fd;
}

/**
 * A log on disk that stays small: `core.log`, and `core.log.1` (newer) to `core.log.2` (older) before it.
 * Written synchronously: a few lines a second, and none is lost when the process is killed. Lines that cannot be written, as on a
 * full disk, are lost; the file says how many once it can be written again.
 */
export function openLogFile(path: string, maxBytes: number = FILE_BYTES_MAX): LogFile {
  const open = () => openSync(path, 'a', 0o600);
  // Undefined after a failure: the file may be another one by then.
  let fd: number | undefined = open();
  let bytes = fstatSync(fd).size;
  let isTorn = false;
  let lost = 0;
  let closed = false;

  const append = (line: string) => {
    if (fd === undefined) {
      fd = open();
      bytes = fstatSync(fd).size;
    }
    const text = Buffer.from(`${isTorn ? '\n' : ''}${line}\n`);
    if (bytes > 0 && bytes + text.length > maxBytes) {
      const next = rotate(path);
      closeQuietly(fd);
      fd = next;
      bytes = 0;
    }
    for (let at = 0; at < text.length; ) {
      at += writeSync(fd, text, at);
      isTorn = at < text.length;
    }
    bytes += text.length;
  };

  return {
    write(line) {
      // The last lines of a process that was ended may still be on their way.
      if (closed) return;
      try {
        if (lost > 0) append(lostLinesRecord(lost, Date.now()));
        lost = 0;
        append(line);
      } catch {
        lost++;
        closeQuietly(fd);
        fd = undefined;
      }
    },
    [Symbol.dispose]() {
      closed = true;
      closeQuietly(fd);
    },
  };
}
