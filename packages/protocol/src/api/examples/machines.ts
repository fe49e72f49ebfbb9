import type { Examples } from '../operation.ts';
import { INSTANCE } from './signed.ts';
import { DATE, PLANNED_INSTANCE } from './values.ts';

const ref = INSTANCE.itemHash;
const params = { ref };
const SNAPSHOTS = { snapshots: [{ name: 'before-upgrade', created_at: DATE }] };
const BACKUP = {
  backup_id: '0123456789abcdef',
  state: 'running',
  reason: null,
  size: null,
  checksum: null,
  created_at: DATE,
  expires_at: '2026-01-03T03:04:05.000Z',
  download_url: null,
  volumes: [],
};

const acted = (status: string) => ({ params, answer: { status, vm_hash: ref } });

/** What schedulers and owners ask a compute node. */
export const MACHINE_EXAMPLES: Examples = {
  setAllocations: {
    body: { instances: [ref] },
    answer: { success: true, successful: [ref], failing: [], errors: {}, stopped: [] },
  },
  updateMachine: acted('updated'),
  notifyAllocation: {
    body: { instance: ref },
    answer: { success: true, successful: true, failing: [], errors: {} },
  },
  reserveResources: {
    body: PLANNED_INSTANCE,
    answer: { status: 'reserved', expires: DATE },
  },
  expireMachine: {
    params,
    body: { timeout: 60 },
    answer: { status: 'expiring', vm_hash: ref, expires: DATE },
  },
  stopMachine: acted('stopped'),
  rebootMachine: acted('rebooting'),
  reinstallMachine: acted('reinstalling'),
  eraseMachine: { params, answer: { status: 'erased', vm_hash: ref, disks: 1 } },
  restoreMachine: { ...acted('restored'), body: { snapshot: 'before-upgrade' } },
  readMachineLogs: {
    params,
    query: { limit: 1 },
    answer: [
      {
        SYSLOG_IDENTIFIER: `vm-${ref}-stdout`,
        MESSAGE: 'login:',
        file: 'console',
        __REALTIME_TIMESTAMP: '1767323045000000',
      },
    ],
  },
  listSnapshots: { params, answer: SNAPSHOTS },
  createSnapshot: { params, body: { name: 'before-upgrade' }, answer: SNAPSHOTS },
  deleteSnapshot: { params: { ref, name: 'old' }, answer: SNAPSHOTS },
  listBackups: { params, answer: { backups: [BACKUP] } },
  startBackup: { params, answer: BACKUP },
  deleteBackup: {
    params: { ref, id: BACKUP.backup_id },
    answer: { status: 'deleted', backup_id: BACKUP.backup_id },
  },
};
