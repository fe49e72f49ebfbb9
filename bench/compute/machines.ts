import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { playScenario } from '../../services/compute/src/testing/play.ts';
import type { Figure } from '../measure/figure.ts';
import type { Figures } from '../measure/figures.ts';

/** What a compute node adds to the start of a virtual machine; measured in a network namespace of its own. */
export async function benchMachines(figures: Figures): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  const file = join(directory, 'figures.json');
  try {
    await playScenario(fileURLToPath(new URL('machines-child.ts', import.meta.url)), 'debian:12', file);
    figures.rows.push(...(JSON.parse(await readFile(file, 'utf8')) as Figure[]));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
