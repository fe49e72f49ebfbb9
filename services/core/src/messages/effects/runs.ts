import { nodeIdOf } from '@skerry/protocol';
import { readRunners } from '../../programs/runners.ts';
import type { EffectWriter } from './effect.ts';

/**
 * Runs become events. They count only by a compute node that a trusted scheduler sends programs to, and of programs that
 * are known here; by anybody else such a POST is a note like any other. An event that was told is not taken back.
 */
export const writeRuns: EffectWriter<'runs'> = async (effects, { trx, schedulers, events }) => {
  const made = effects.filter((effect) => !effect.undo);
  if (made.length === 0) return;
  const nodes = new Set((await readRunners(trx, schedulers)).map((runner) => runner.node_address));
  const told = made.filter(({ accepted }) => nodes.has(accepted.message.sender));
  const hashes = [...new Set(told.flatMap(({ change }) => change.runs.map((run) => run.program_hash)))];
  if (hashes.length === 0) return;
  const rows = await trx
    .selectFrom('programs')
    .select(['program_hash', 'owner'])
    .where('program_hash', 'in', hashes)
    .execute();
  const owners = new Map(rows.map((row) => [row.program_hash, row.owner]));
  for (const { accepted, change } of told)
    for (const run of change.runs) {
      const owner = owners.get(run.program_hash);
      if (owner === undefined) continue;
      const node_id = nodeIdOf(accepted.message.sender);
      events.push({ kind: 'program_executed', data: { ...run, owner, node_id } });
    }
};
