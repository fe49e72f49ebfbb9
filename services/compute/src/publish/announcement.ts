import { VERSION } from '@skerry/kit';
import { IMAGE_NAMES, type NodeContent, type Reason } from '@skerry/protocol';
import type { Capacity } from '../host/capacity.ts';
import { NO_CAPACITY } from '../host/capacity.ts';
import type { AccelDecision } from '../vm/accel.ts';

export interface Announcement {
  readonly url: string;
  readonly ipv6Prefix: string;
  readonly capacity: Capacity;
  readonly accelerator: AccelDecision | undefined;
  readonly reason: Reason | null;
  /** What the node runs of programs, also where it holds no virtual machines. */
  readonly programFeatures: readonly string[];
}

/** It is dated when it is sent. */
export type UndatedNode = Omit<NodeContent, 'announced_at_ms'>;

/** What the network is told of this node. One that cannot run anything says so, and offers nothing. Pure. */
export function nodeContentOf({
  url,
  ipv6Prefix,
  capacity,
  accelerator,
  reason,
  programFeatures,
}: Announcement): UndatedNode {
  const { cpu, memoryMib, diskGib } = reason === null ? capacity : NO_CAPACITY;
  const features = ['qemu', 'x86_64', ...IMAGE_NAMES.map((name) => `image:${name}`)];
  if (accelerator) features.push(`accelerator:${accelerator.accelerator}`);
  return {
    url,
    ipv6_prefix: ipv6Prefix,
    capacity: { cpu, memory_mib: memoryMib, disk_gib: diskGib },
    features: [...(reason === null ? features : []), ...programFeatures],
    version: VERSION,
    reason,
  };
}
