import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';

const FILE_BYTES_MAX = 10 * 1024 * 1024;
const FILES_KEPT = 3;

export interface LogFile extends Disposable {
  write(line: string): void;
}

/**
 * A log on disk that stays small: `core.log`, and `core.log.1` (newer) to `core.log.2` (older) before it.
 * Written synchronously: a few lines a second, and none is lost when the process is killed.
 */
export function openLogFile(path: string, maxBytes: number = FILE_BYTES_MAX): LogFile {
  const open = () => openSync(path, 'a', 0o600);
  let fd = open();
  let bytes = fstatSync(fd).size;
  let closed = false;

  const rotate = () => {
    closeSync(fd);
    for (let age = FILES_KEPT - 1; age >= 1; age--) {
      try {
        renameSync(age === 1 ? path : `${path}.${age - 1}`, `${path}.${age}`);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
    fd = open();
    bytes = 0;
  };

  return {
    write(line) {
      // The last lines of a process that was ended may still be on their way.
      if (closed) return;
      const text = `${line}\n`;
      const size = Buffer.byteLength(text);
      if (bytes > 0 && bytes + size > maxBytes) rotate();
      writeSync(fd, text);
      bytes += size;
    },
    [Symbol.dispose]() {
      closed = true;
      closeSync(fd);
    },
  };
}
