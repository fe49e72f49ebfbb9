import type { Cores } from './cores.ts';
import { ANSWERING, WRITING } from './node.ts';

const LOSSES = /^skerry_database_losses (\d+)/m;
const ALL = [...ANSWERING, ...WRITING];

/** How often each process of the node has noticed since it began that the database lost something; by its name. */
export async function readLosses(cores: Cores): Promise<ReadonlyMap<string, number>> {
  const read = async (index: number) => {
    const text = await (await fetch(`${cores.urlOf(index)}/metrics`)).text();
    return [cores.nameOf(index), Number(LOSSES.exec(text)?.[1])] as const;
  };
  return new Map(await Promise.all(ALL.map(read)));
}
