import type { Logger } from '@skerry/kit';
import type { InstanceDeps } from '../deps.ts';
import { putAside, type ReleaseReason } from '../disks/released.ts';
import { dropFetched } from '../disks/volumes.ts';
import type { Place } from '../place.ts';
import { instanceDirectory } from '../record/record.ts';
import type { StoredRecord } from '../record/stored-record.ts';

/** Takes an instance off this node. Until its directory is away it may come back: its record is open, its part of the IPv4 kept. */
export async function release(
  { network, addresses, dataDir, now }: InstanceDeps,
  { id, tap }: Place,
  stored: StoredRecord,
  why: ReleaseReason,
  log: Logger,
): Promise<void> {
  await network.remove(tap);
  if (why === 'forgotten') await dropFetched(instanceDirectory(dataDir, id), stored.record.volumes);
  const where = await stored.close(() => putAside(dataDir, stored.record, why, now()));
  // With its disk it would find its address there, which its guest was set up with.
  if (why === 'moved' && stored.record.base !== null) addresses.leave(id);
  else addresses.free(id);
  // Only what the owner did not ask for may be news to whoever runs the node.
  const level = why === 'moved' ? 'warn' : 'info';
  log[level]({ where, why }, 'the instance is no longer on this node; its disk was set aside');
}
