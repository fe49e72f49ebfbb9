import type { AskedSigner } from '@skerry/client';
import { type MachineAt, openMachine } from './machine.ts';

/** What an owner does with copies of a machine's disk. */
export type CopyAction =
  | { readonly kind: 'list' }
  | { readonly kind: 'snapshot'; readonly name: string }
  | { readonly kind: 'dropSnapshot'; readonly name: string }
  | { readonly kind: 'restoreSnapshot'; readonly name: string }
  | { readonly kind: 'backup' }
  | { readonly kind: 'dropBackup'; readonly id: string }
  | { readonly kind: 'restoreBackup'; readonly id: string };

interface SnapshotCopy {
  readonly name: string;
  readonly atMs: number;
}

export interface BackupCopy {
  readonly id: string;
  readonly state: 'running' | 'done' | 'failed';
  readonly reason: string | null;
  readonly bytes: number | null;
  /** `sha256:` and 64 digits. */
  readonly checksum: string | null;
  readonly atMs: number;
  readonly untilMs: number;
  /** Where it can be fetched: the link itself grants that. */
  readonly url: string | null;
}

/** What there is after an action. */
export interface Copies {
  readonly snapshots: readonly SnapshotCopy[];
  readonly backups: readonly BackupCopy[];
}

type Machine = Awaited<ReturnType<typeof openMachine>>;

async function act(machine: Machine, action: CopyAction): Promise<unknown> {
  switch (action.kind) {
    case 'list':
      return undefined;
    case 'snapshot':
      return machine.createSnapshot(action.name);
    case 'dropSnapshot':
      return machine.deleteSnapshot(action.name);
    case 'restoreSnapshot':
      return machine.restore({ snapshot: action.name });
    case 'backup':
      return machine.startBackup();
    case 'dropBackup':
      return machine.deleteBackup(action.id);
    case 'restoreBackup':
      return machine.restore({ backup_id: action.id });
  }
}

/** Does something with the copies of a machine's disk, and gives what there is then. Throws AppError. */
export async function workOnCopies(
  of: MachineAt,
  action: CopyAction,
  signer: AskedSigner | undefined,
): Promise<Copies> {
  const machine = await openMachine(of, signer);
  await act(machine, action);
  const [snapshots, backups] = await Promise.all([machine.listSnapshots(), machine.listBackups()]);
  return {
    snapshots: snapshots.map(({ name, created_at: at }) => ({ name, atMs: Date.parse(at) })),
    backups: backups.map((one) => ({
      id: one.backup_id,
      state: one.state,
      reason: one.reason?.message ?? null,
      bytes: one.size,
      checksum: one.checksum,
      atMs: Date.parse(one.created_at),
      untilMs: Date.parse(one.expires_at),
      url: one.download_url === null ? null : machine.url + one.download_url,
    })),
  };
}
