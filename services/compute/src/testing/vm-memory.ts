// The memory of a compute node over many starts of a virtual machine. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import { createTiny, storeTiny } from './tiny-guest.ts';
import { isPhase, playInWorld, READY_MS, step, type VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

const [, , STARTS = '50'] = process.argv.slice(2);
/** Until here caches fill: compiled code, connections. */
const WARM_STARTS = 10;
const GROWTH_MIB_MAX = 16;

async function scenario(world: VmWorld): Promise<void> {
  await world.startNode();
  const node = await world.announced();
  const { instance_id: id } = await createTiny(world, 'often', await storeTiny(world), node);
  await world.core.until(id, isPhase('running'), READY_MS);
  const samples: number[] = [];
  const starts = Number(STARTS);
  for (let count = 1; count <= starts; count++) {
    const restartId = await world.core.control(id, 'restart');
    await until('the restart is carried out', READY_MS, async () => {
      const last = (await world.core.listStatuses(id)).at(-1);
      return last?.phase === 'running' && last.restart_id === restartId;
    });
    samples.push(await world.nodeMemoryMib());
    if (count % 10 === 0) step(`after ${count} starts: ${samples.at(-1)!.toFixed(1)} MiB resident`);
  }
  // The lowest of some: what has not been collected yet is no leak.
  const lowest = (some: readonly number[]) => Math.min(...some);
  const growth = lowest(samples.slice(-WARM_STARTS)) - lowest(samples.slice(WARM_STARTS, 2 * WARM_STARTS));
  step(`${growth.toFixed(1)} MiB more after ${starts} starts than after ${WARM_STARTS}`);
  assert.ok(growth < GROWTH_MIB_MAX, `the node grew by ${growth} MiB`);
}

await playInWorld(scenario);
