import { fileURLToPath } from 'node:url';
import { playScenario } from '../../services/compute/src/testing/play.ts';

/** What a compute node adds to the start of a virtual machine; measured in a network namespace of its own. */
export async function benchMachines(): Promise<void> {
  await playScenario(fileURLToPath(new URL('machines-child.ts', import.meta.url)));
}
