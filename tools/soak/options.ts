import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How long a soak runs, and the numbers that it draws. */
export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** How many runs, where it is told: then the seconds do not count. */
  readonly seeds?: number | undefined;
  /** Flights: how many inputs, where it is told: then the seconds do not count. */
  readonly inputs?: number | undefined;
  /** Failover: only what has this in its name is broken. */
  readonly only?: string | undefined;
  /** Failover: standbys may lack what was acknowledged. */
  readonly isAsynchronous?: boolean | undefined;
}

/** Where the soaks keep what they build. */
export async function withDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-soak-'));
  try {
    await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
