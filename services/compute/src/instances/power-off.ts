import { join } from 'node:path';
import { createLogger, readTextIfAny } from '@skerry/kit';
import { MACHINE_FILES } from '../vm/machine.ts';
import { machineIdIn, readProcess } from '../vm/process.ts';
import { Vm } from '../vm/vm.ts';
import { instanceDirectory, listInstanceNames } from './record/record.ts';
import { shutDown } from './worker/shut-down.ts';

/** What became of a machine. `cut`: it did not shut down in time, or its QEMU does not answer, and its power was cut. */
export interface PoweredOff {
  readonly instance_id: string;
  readonly state: 'off' | 'cut';
}

async function findMachine(directory: string): Promise<Vm | undefined> {
  const pid = Number((await readTextIfAny(join(directory, MACHINE_FILES.pid)))?.trim());
  const facts = Number.isSafeInteger(pid) && pid > 1 ? await readProcess(pid) : undefined;
  const machineId = facts && machineIdIn(facts);
  return machineId === undefined ? undefined : Vm.adopt(directory, machineId);
}

async function powerOff(directory: string): Promise<PoweredOff['state'] | undefined> {
  const log = createLogger('compute', 'silent');
  using vm = await findMachine(directory);
  if (!vm) return undefined;
  await shutDown(vm, new AbortController().signal, log);
  const state = vm.state === 'off' ? 'off' : 'cut';
  await vm.end();
  return state;
}

/**
 * Presses the power button of every machine below a data directory, all at once, as the end of the computer needs it: nobody holds
 * their QEMU by then. The next compute node starts them again. Resolves when none is left; at most 90 s are given to a guest.
 */
export async function powerOffMachines(
  dataDir: string,
  told: (one: PoweredOff) => void,
): Promise<PoweredOff[]> {
  const ids = await listInstanceNames(dataDir);
  const all = await Promise.all(
    ids.map(async (id): Promise<PoweredOff[]> => {
      // A QEMU that does not speak is ended with its scope.
      const state = await powerOff(instanceDirectory(dataDir, id)).catch(() => 'cut' as const);
      if (state === undefined) return [];
      const one = { instance_id: id, state };
      told(one);
      return [one];
    }),
  );
  return all.flat();
}
