import { createHash } from 'node:crypto';

/** The kernel's IFNAMSIZ is 16 with the final NUL. */
export const INTERFACE_NAME_CHARS = 15;

const NODE_DIGITS = 5;
const TABLE_DIGITS = 12;
const INSTANCE_DIGITS = INTERFACE_NAME_CHARS - 1 - NODE_DIGITS;

/** The names of everything a node makes in the kernel: other nodes of the same machine have others. */
export interface NetworkNames {
  /** Every tap of the node, and nothing else, starts with it. */
  readonly tapPrefix: string;
  /** The node's own nftables table. */
  readonly table: string;
}

/** @param nodeId 64 hexadecimal digits */
export function networkNames(nodeId: string): NetworkNames {
  return { tapPrefix: `s${nodeId.slice(0, NODE_DIGITS)}`, table: `skerry_${nodeId.slice(0, TABLE_DIGITS)}` };
}

/** The tap of an instance: `s`, five digits of the node, nine of the instance. */
export function tapName(names: NetworkNames, instanceId: string): string {
  return names.tapPrefix + instanceId.slice(0, INSTANCE_DIGITS);
}

/** A MAC address of the locally administered kind that follows from the instance (IEEE 802, second bit of the first byte). */
export function macOf(instanceId: string): string {
  const digits = createHash('sha256').update(`mac\n${instanceId}`).digest('hex').slice(0, 10);
  return `52:${digits.match(/../g)?.join(':')}`;
}

/** The 32 digits that are the guest's machine-id and its SMBIOS UUID. */
export function machineIdOf(instanceId: string): string {
  return createHash('sha256').update(`machine-id\n${instanceId}`).digest('hex').slice(0, 32);
}
