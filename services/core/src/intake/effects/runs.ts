import { nodeIdOf, type ProgramRun } from '@skerry/protocol';
import { readRunners } from '../../state/programs/runners.ts';
import { Effect, made } from '../effect.ts';
import { programEffect } from './programs.ts';

/**
 * Runs become events. They count only by a compute node that a trusted scheduler sends programs to, and of programs that
 * are known here; by anybody else such a POST is a note like any other. An event that was told is not taken back.
 */
export const runsEffect = new Effect<readonly ProgramRun[]>({
  rowsOf: (runs) => runs.length,
  after: [programEffect],
  async write(steps, { trx, schedulers, events }) {
    const fresh = made(steps);
    if (fresh.length === 0) return;
    const nodes = new Set((await readRunners(trx, schedulers)).map((runner) => runner.node_address));
    const told = fresh.filter(({ message }) => nodes.has(message.sender));
    const hashes = [...new Set(told.flatMap(({ data }) => data.map((run) => run.program_hash)))];
    if (hashes.length === 0) return;
    const rows = await trx
      .selectFrom('programs')
      .select(['program_hash', 'owner'])
      .where('program_hash', 'in', hashes)
      .execute();
    const owners = new Map(rows.map((row) => [row.program_hash, row.owner]));
    for (const { message, data } of told)
      for (const run of data) {
        const owner = owners.get(run.program_hash);
        if (owner === undefined) continue;
        const node_id = nodeIdOf(message.sender);
        events.push({ kind: 'program_executed', data: { ...run, owner, node_id } });
      }
  },
});
