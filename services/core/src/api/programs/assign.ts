import type { Runner } from '@skerry/protocol';
import type { StandingProgram } from '../../state/programs/programs.ts';
import { orderRunners } from './forward.ts';

/** What decides which node is first for a program. */
const fingerprintOf = (runners: readonly Runner[]) =>
  JSON.stringify(runners.map(({ node_id, runtimes }) => [node_id, runtimes]));

/**
 * Which node runs each standing program: the one that calls of it are sent to first, of those that a scheduler lists. All core
 * nodes that believe the same scheduler say the same.
 */
export class Assignments {
  #fingerprint = '';
  #nodes = new Map<string, string | undefined>();

  /** Those of one node. Found out once for each program, as long as the nodes are the same. */
  listFor<P extends StandingProgram>(
    nodeId: string,
    programs: readonly P[],
    runners: readonly Runner[],
  ): P[] {
    const fingerprint = fingerprintOf(runners);
    const known = fingerprint === this.#fingerprint ? this.#nodes : new Map<string, string | undefined>();
    this.#fingerprint = fingerprint;
    this.#nodes = new Map(
      programs.map((program) => {
        const { programHash: hash } = program;
        return [hash, known.has(hash) ? known.get(hash) : orderRunners(runners, program)[0]?.node_id];
      }),
    );
    return programs.filter(({ programHash }) => this.#nodes.get(programHash) === nodeId);
  }
}
