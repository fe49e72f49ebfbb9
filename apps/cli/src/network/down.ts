import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { PoweredOff } from '@skerry/compute';
import { type DevnetState, daemonDataDir, stopDevnet } from '@skerry/devnet';
import type { Context } from '../context.ts';
import { downMachinesAt, forgetLocal, listLocalDirs } from '../networks/local.ts';

export interface DownOptions {
  readonly machines?: boolean;
  readonly dataDir?: string;
}

const WAITING: Readonly<Record<DevnetState, string>> = {
  running: 'stopping the network',
  ending: 'its daemons are still stopping',
  stopped: '',
};

const count = (machines: readonly unknown[]) =>
  machines.length === 1 ? '1 virtual machine' : `${machines.length} virtual machines`;

const them = (machines: readonly unknown[]) => (machines.length === 1 ? 'it' : 'them');

/** What is told to people. Pure. */
export function renderDown(
  was: DevnetState,
  ended: readonly PoweredOff[],
  running: readonly string[],
  command = 'skerry down --machines',
): string {
  const words = [was === 'stopped' ? 'no network was running' : 'the network is stopped'];
  const cut = ended.filter(({ state }) => state === 'cut');
  if (ended.length > 0)
    words.push(`${count(ended)} powered off, and the next "skerry up" starts ${them(ended)} again`);
  if (cut.length > 0)
    words.push(`the power of ${cut.length} was cut, because ${them(cut)} did not shut down in time`);
  if (running.length > 0)
    words.push(`${count(running)} still running: "${command}" shuts ${them(running)} down`);
  return words.join('; ');
}

/** Ends the first network that runs, of those that may. Where none does, the first place is the one that is meant. */
async function stopFirst({ output }: Context, places: readonly string[]) {
  for (const dataDir of places) {
    const was = await stopDevnet(dataDir, (state) => output.note(WAITING[state]));
    if (was !== 'stopped') return { dataDir, was };
  }
  return { dataDir: places[0]!, was: 'stopped' as const };
}

/** Ends the network that `skerry up` started, also where that was killed; with `--machines` its virtual machines, too. */
export async function down(context: Context, options: DownOptions): Promise<void> {
  const { output, paths } = context;
  const places = options.dataDir === undefined ? await listLocalDirs(paths.data) : [resolve(options.dataDir)];
  const { dataDir, was } = await stopFirst(context, places);
  await forgetLocal(paths.data, dataDir);
  const computeDir = daemonDataDir(dataDir, 'compute');
  if (existsSync(join(computeDir, 'programs')))
    await (await import('./left-machines.ts')).clearGroups(computeDir);
  let ended: PoweredOff[] = [];
  let left: string[] = [];
  if (existsSync(join(computeDir, 'instances'))) {
    const { endMachines, findMachines } = await import('./left-machines.ts');
    left = await findMachines(computeDir);
    if (options.machines === true) {
      if (left.length > 0) output.note(`shutting down ${count(left)}; up to 90 s are given to each`);
      ended = await endMachines(context, computeDir);
      left = [];
    }
  }
  const kept = existsSync(dataDir)
    ? `data and logs are kept in ${dataDir}`
    : `there is no directory ${dataDir}`;
  output.result(
    { status: 'down', was, data_dir: dataDir, machines_ended: ended, machines_running: left },
    `${renderDown(was, ended, left, downMachinesAt(paths.data, dataDir))}\n${kept}`,
  );
}
