import { isIPv6 } from 'node:net';
import { createAddressSet, isPublicAddress } from '@skerry/kit';
import {
  createParser,
  InstanceStatus,
  type InstanceView,
  type ItemHash,
  isInstanceAddress,
  Phase,
  type Phase as PhaseName,
  Reason,
} from '@skerry/protocol';
import Type from 'typebox';

/** What the gateway keeps of an instance. */
export interface Instance {
  readonly hash: ItemHash;
  /** Unix seconds of the INSTANCE message. */
  readonly createdAt: number;
  /** Null while there is none, and where it is one that the gateway does not connect to. */
  readonly ipv6: string | null;
  /** The address that is told and not connected to. */
  readonly refusedIpv6: string | null;
  readonly desired: 'running' | 'stopped';
  /** Whether TLS connections to it begin with a header of the PROXY protocol. */
  readonly proxyHeader: boolean;
  readonly phase: PhaseName;
  /** Why it is in that phase, in a sentence. */
  readonly reason: string | null;
}

/** The part of an instance view that the gateway reads, and writes to its file. */
const SourceInstance = Type.Object({
  instance_id: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  created_at: Type.Integer({ minimum: 0 }),
  ipv6: Type.String({ maxLength: 45 }),
  desired: InstanceStatus,
  phase: Phase,
  reason: Type.Union([Reason, Type.Null()]),
  firewall: Type.Optional(Type.Object({ proxyProtocol: Type.Optional(Type.Boolean()) })),
});
export type SourceInstance = Pick<
  InstanceView,
  'instance_id' | 'created_at' | 'ipv6' | 'desired' | 'phase' | 'reason'
> & { readonly firewall?: { readonly proxyProtocol?: boolean } };

const parseSource = createParser(SourceInstance, 'instance') as (value: unknown) => SourceInstance;

/** Networks that are routed within a private network: unique local addresses, and those of laboratories. */
const PRIVATE = createAddressSet(['fc00::/7', '2001:db8::/32']);

export interface AddressPolicy {
  /** For tests on one machine. */
  readonly allowLocal: boolean;
  /** Instances may be in private networks. */
  readonly allowPrivate: boolean;
}

/**
 * Whether connections go to an address that a core node tells of an instance. It has to be the one that the instance's hash
 * gives in a node's network (the scheduler allocates from those that nodes proved, docs/scheduling.md), and that network one
 * that can be a node's: whoever gets something else told leads nobody to this machine, this link or another's machines.
 */
export function isReachableAddress(ipv6: string, hash: string, policy: AddressPolicy): boolean {
  if (!isIPv6(ipv6) || ipv6.includes('%')) return false;
  if (policy.allowLocal) return true;
  const isRouted = isPublicAddress(ipv6) || (policy.allowPrivate && PRIVATE(ipv6));
  return isRouted && isInstanceAddress(ipv6, hash);
}

/** An instance from a core node's view of it, or from our own file. Throws INVALID_CONTENT. */
export function parseInstance(view: unknown, policy: AddressPolicy): Instance {
  const source = parseSource(view);
  const isReachable = isReachableAddress(source.ipv6, source.instance_id, policy);
  return {
    hash: source.instance_id as ItemHash,
    createdAt: source.created_at,
    ipv6: isReachable ? source.ipv6 : null,
    refusedIpv6: isReachable || source.ipv6 === '' ? null : source.ipv6,
    desired: source.desired,
    proxyHeader: source.firewall?.proxyProtocol ?? false,
    phase: source.phase,
    reason: source.reason?.message ?? null,
  };
}

/** Why an instance without an address that is connected to has none. */
export const explainNoAddress = ({ refusedIpv6 }: Instance) =>
  refusedIpv6 === null
    ? 'it has no address yet'
    : `its address ${refusedIpv6} is not its own one in a network that leads to a node, so nothing is sent there`;

/** Routed, if the name is its own: the address is known and the owner wants it to run. */
export function isRoutable(instance: Instance): boolean {
  // The observed phase does not count: it may lag behind, and a machine that is still starting answers the moment it can.
  return instance.ipv6 !== null && instance.desired === 'running';
}

/** Who keeps a name that two hashes share: the earlier, by timestamp, then by hash (design decision 5). */
export function precedes(one: Instance, other: Instance): boolean {
  return one.createdAt !== other.createdAt ? one.createdAt < other.createdAt : one.hash < other.hash;
}

export function isSameInstance(one: Instance, other: Instance): boolean {
  return (
    one.hash === other.hash &&
    one.createdAt === other.createdAt &&
    one.ipv6 === other.ipv6 &&
    one.refusedIpv6 === other.refusedIpv6 &&
    one.desired === other.desired &&
    one.proxyHeader === other.proxyHeader &&
    one.phase === other.phase &&
    one.reason === other.reason
  );
}
