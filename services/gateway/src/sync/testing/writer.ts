import type { ItemHash } from '@skerry/protocol';
import type { Instance } from '../../table/instance.ts';
import { writeState } from '../store.ts';

/** Writes states of many sizes, one after the other, until it is killed. The cursor says how many instances each has. */
const dataDir = process.argv[2]!;
const WRITES = 100_000;

const some = (index: number): Instance => ({
  hash: index.toString(16).padStart(64, '0') as ItemHash,
  createdAt: index,
  effectiveAt: index,
  placed: true,
  ipv6: '2001:db8::1',
  refusedIpv6: null,
  desired: 'running',
  proxyHeader: false,
  phase: 'running',
  reason: null,
  reasonCode: null,
});

for (let write = 1; write <= WRITES; write++) {
  const count = 1000 + ((write * 7919) % 5000);
  await writeState(dataDir, {
    instances: Array.from({ length: count }, (_, i) => some(i)),
    cursor: String(count),
    lastSyncTime: write,
  });
  process.send?.(write);
}
