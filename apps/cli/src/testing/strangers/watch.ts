import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { listDescendants, residentMib } from '../processes.ts';

/** What the network takes of the machine, looked at now and then. */
export interface Sample {
  readonly atMs: number;
  /** Of all daemons together, their databases included. */
  readonly memoryMib: number;
  readonly logBytes: number;
}

function logBytesBelow(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.log(\.\d+)?$/.test(entry.name))
    .reduce((sum, entry) => {
      try {
        return sum + statSync(join(entry.parentPath, entry.name)).size;
      } catch {
        // It was rotated away meanwhile.
        return sum;
      }
    }, 0);
}

/** What runs below this process. Machines are what users asked for, and not looked at. */
export function takeSample(dataDir: string): Sample {
  const processes = listDescendants(process.pid).filter(
    ({ pid, commandLine }) => pid !== process.pid && !/qemu-system/.test(commandLine),
  );
  return { atMs: Date.now(), memoryMib: residentMib(processes), logBytes: logBytesBelow(dataDir) };
}
