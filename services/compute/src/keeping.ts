import type { Keeping } from '@skerry/kit';
import type { ComputeConfig } from './config.ts';

/**
 * What a compute node must not lose (docs/backup.md). Disks of machines are not among it: a disk that is copied while its
 * machine writes to it is none. Their owners save them (`skerry instance backup`).
 */
export const computeKeeping: Keeping<ComputeConfig> = {
  identity: 'node.key',
  entries: [
    { path: 'node.key', kind: 'secret', what: 'the key that schedulers know it by' },
    { path: 'link.key', kind: 'secret', what: 'signs links to backups of machines' },
    { path: 'ipv6-prefix', kind: 'state', what: 'the network of its machines' },
    { path: 'ipv4-pool', kind: 'state', what: 'their private IPv4 network' },
    {
      path: 'operations.jsonl',
      kind: 'state',
      what: "owners' requests that were carried out and are still valid",
    },
    { path: 'domains.json', kind: 'state', what: 'custom domains' },
    { path: 'programs/messages-to-programs.json', kind: 'state', what: 'messages that wait for programs' },
    { path: 'programs/volumes/', kind: 'files', what: 'volumes of programs' },
    { path: 'programs/', kind: 'passing', what: 'what programs are run with' },
    { path: 'instances/', kind: 'passing', what: 'machines and their disks' },
    { path: 'bases/', kind: 'passing', what: 'images that their disks build on' },
    { path: 'released/', kind: 'passing', what: 'disks that were set aside' },
    { path: 'backups/', kind: 'passing', what: "owners' backups, kept for a day" },
    { path: 'upload-*', kind: 'passing', what: 'disks that are being uploaded' },
  ],
  absent: () => [
    'disks of instances: their owners save them (skerry instance backup NAME -o FILE); after a restore instances start with new disks. Do not remove this directory while there are any',
  ],
};
