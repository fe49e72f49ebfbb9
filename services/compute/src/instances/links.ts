import { isDiskFull } from '../host/disk-full.ts';
import type { AddressBook } from '../network/address-book.ts';
import { findLink } from '../network/ipv4.ts';
import type { NodeNetwork } from '../network/network.ts';
import type { InstanceDeps } from './deps.ts';
import { listLeftLinks } from './disks/released.ts';
import type { Place } from './place.ts';
import { type InstanceRecord, writeRecord } from './record/record.ts';

interface ClaimDeps extends Pick<InstanceDeps, 'dataDir' | 'ipv4Pool'> {
  readonly addresses: Pick<AddressBook, 'restore' | 'keep' | 'claim'>;
  readonly network: Pick<NodeNetwork, 'findGateway'>;
}

/**
 * Who had which part of the node's IPv4 when the last process ended. Records of older versions, of instances with a disk, get theirs
 * now: their taps must be among those that are kept.
 *
 * @param left instances whose machines run, and whose records cannot be read
 */
export async function claimLinks(
  { addresses, dataDir, ipv4Pool, network }: ClaimDeps,
  records: readonly InstanceRecord[],
  left: readonly Place[],
): Promise<InstanceRecord[]> {
  for (const { id, ipv4 } of records) if (ipv4) addresses.restore(id, ipv4);
  for (const { id, link } of await listLeftLinks(dataDir)) addresses.keep(id, link);
  for (const { id, tap } of left) {
    const link = findLink(ipv4Pool, await network.findGateway(tap));
    if (link !== undefined) addresses.keep(id, link);
  }
  const claimed: InstanceRecord[] = [];
  for (const record of records) {
    if (record.ipv4 || record.base === null) {
      claimed.push(record);
      continue;
    }
    const ipv4 = await addresses.claim(record.id, record.wanted);
    await writeRecord(dataDir, { ...record, ipv4 }).catch((error: unknown) => {
      // It is written with the next change.
      if (!isDiskFull(error)) throw error;
    });
    claimed.push({ ...record, ipv4 });
  }
  return claimed;
}
