import type { HttpServer, Logger } from '@skerry/kit';
import { findTrees } from '../groups/trees.ts';
import { networkNames } from '../network/names.ts';
import { ProofAddress } from '../network/proof-address.ts';
import { decideBySigns, readKvmSigns } from '../vm/accel.ts';
import { listMissingSandboxPrograms, readHostFacts } from './preflight.ts';
import { listObstacles, packagesFor } from './requirements.ts';

/** What this machine can do of a compute node's work, looked at without changing anything. */
export interface HostExamination {
  /** What keeps it from running virtual machines, each as `what; how to mend it`. */
  readonly obstacles: readonly string[];
  /** Why machines would be emulated; undefined where KVM may work, which the node tries with a guest. */
  readonly kvmObstacle: string | undefined;
  /** What keeps it from running programs, in the same form. */
  readonly programObstacles: readonly string[];
}

export async function examineHost(): Promise<HostExamination> {
  const missing = await listMissingSandboxPrograms();
  return {
    obstacles: listObstacles(await readHostFacts()),
    kvmObstacle: decideBySigns(await readKvmSigns()),
    programObstacles: [
      ...(missing.length === 0
        ? []
        : [`missing programs: ${missing.join(', ')}; apt-get install ${packagesFor(missing).join(' ')}`]),
      ...(findTrees()
        ? []
        : [
            'the control groups memory, pids and cpu are not all there; enable them on the kernel command line',
          ]),
    ],
  };
}

/**
 * Holds the address that proves a /64 and serves there, until it is disposed of.
 * @returns why that is impossible, as a sentence, or what holds it
 */
export async function holdProofAddress(
  prefix: string,
  addRoutes: (app: HttpServer) => void,
  log: Logger,
): Promise<string | AsyncDisposable> {
  const held = new ProofAddress({ prefix, names: networkNames('0'.repeat(64)), addRoutes, log });
  const reason = await held.keep();
  return reason?.message ?? held;
}
