import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A devnet in a process of its own that prints the pids of its daemons. @param behaviour of the daemons that stand in */
export async function startOutside(
  dataDir: string,
  behaviour: Readonly<Record<string, string>> = {},
): Promise<{ parent: ChildProcess; pids: number[] }> {
  const program = fileURLToPath(new URL('./parent.ts', import.meta.url));
  const parent = spawn(process.execPath, [program, dataDir, JSON.stringify(behaviour)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [chunk] = (await once(parent.stdout!, 'data')) as [Buffer];
  return { parent, pids: JSON.parse(chunk.toString()) as number[] };
}
