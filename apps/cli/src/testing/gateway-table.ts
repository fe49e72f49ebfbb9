import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Of an instance, what a gateway keeps; the rest is that of a machine that runs. */
export interface KnownInstance {
  readonly instance_id: string;
  readonly created_at?: number;
  readonly ipv6?: string;
  readonly desired?: 'running' | 'stopped';
  readonly phase?: string;
  readonly reason?: { readonly code: string; readonly message: string };
}

/** A gateway's own table, as from an earlier run: it routes by that before it has heard of any core node. */
export async function writeGatewayTable(directory: string, known: readonly KnownInstance[]): Promise<void> {
  await mkdir(directory, { recursive: true });
  const instances = known.map((instance) => ({
    created_at: 1000,
    ipv6: '::1',
    desired: 'running',
    phase: 'running',
    reason: null,
    ...instance,
  }));
  const table = { format: 1, cursor: null, last_sync_time: 0, instances };
  await writeFile(join(directory, 'routes.json'), JSON.stringify(table));
}
