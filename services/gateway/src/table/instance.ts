import { isIPv6 } from 'node:net';
import { isPrivateIpv6, isPublicAddress } from '@skerry/kit';
import {
  AWAITING_NODE,
  createParser,
  HASH64_PATTERN,
  InstanceStatus,
  type InstanceView,
  type ItemHash,
  isBeyondStart,
  isInstanceAddress,
  Phase,
  type Phase as PhaseName,
  Reason,
  UNIX_MS_MAX,
} from '@skerry/protocol';
import { Type } from '@skerry/protocol/type';

/** What the gateway keeps of an instance. */
export interface Instance {
  readonly hash: ItemHash;
  /** Unix seconds of the INSTANCE message. */
  readonly createdAt: number;
  /** Since when it counts against others, Unix seconds: its timestamp, or when a core node first had it where it came late. */
  readonly effectiveAt: number;
  /** Whether it ever had an address: one that never had takes a name from nobody. */
  readonly placed: boolean;
  /** Null while there is none, and where it is one that the gateway does not connect to. */
  readonly ipv6: string | null;
  /** The address that is told and not connected to. */
  readonly refusedIpv6: string | null;
  readonly desired: 'running' | 'stopped';
  /** Whether TLS connections to it begin with a header of the PROXY protocol. */
  readonly proxyHeader: boolean;
  readonly phase: PhaseName;
  /** Why it is in that phase, in a sentence, and its code. */
  readonly reason: string | null;
  readonly reasonCode: string | null;
}

/** Unix seconds that a date can show; an instance beyond is one that cannot be read, and not one that cannot be explained. */
const Moment = Type.Integer({ minimum: 0, maximum: UNIX_MS_MAX / 1_000 });

/** The part of an instance view that the gateway reads, and writes to its file. */
const SourceInstance = Type.Object({
  instance_id: Type.String({ pattern: HASH64_PATTERN }),
  created_at: Moment,
  // Core nodes before these fields left them out.
  effective_at: Type.Optional(Moment),
  placed: Type.Optional(Type.Boolean()),
  ipv6: Type.String({ maxLength: 45 }),
  desired: InstanceStatus,
  phase: Phase,
  reason: Type.Union([Reason, Type.Null()]),
  firewall: Type.Optional(Type.Object({ proxyProtocol: Type.Optional(Type.Boolean()) })),
});
export type SourceInstance = Pick<
  InstanceView,
  'instance_id' | 'created_at' | 'effective_at' | 'placed' | 'ipv6' | 'desired' | 'phase' | 'reason'
> & { readonly firewall?: { readonly proxyProtocol?: boolean } };

const parseSource = createParser(SourceInstance, 'instance') as (value: unknown) => SourceInstance;

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
  const isRouted = isPublicAddress(ipv6) || (policy.allowPrivate && isPrivateIpv6(ipv6));
  return isRouted && isInstanceAddress(ipv6, hash);
}

/** An instance from a core node's view of it, or from our own file. Throws INVALID_CONTENT. */
export function parseInstance(view: unknown, policy: AddressPolicy): Instance {
  const source = parseSource(view);
  const isReachable = isReachableAddress(source.ipv6, source.instance_id, policy);
  return {
    hash: source.instance_id as ItemHash,
    createdAt: source.created_at,
    effectiveAt: source.effective_at ?? source.created_at,
    placed: source.placed ?? source.ipv6 !== '',
    ipv6: isReachable ? source.ipv6 : null,
    refusedIpv6: isReachable || source.ipv6 === '' ? null : source.ipv6,
    desired: source.desired,
    proxyHeader: source.firewall?.proxyProtocol ?? false,
    phase: source.phase,
    reason: source.reason?.message ?? null,
    reasonCode: source.reason?.code ?? null,
  };
}

/** It can never start as it is, whatever its owner wants. */
export const isBarred = ({ phase, reasonCode }: Instance): boolean =>
  isBeyondStart(phase, reasonCode === null ? null : { code: reasonCode });

/** Why an instance without an address that is connected to has none. */
export const explainNoAddress = ({ refusedIpv6 }: Instance) =>
  refusedIpv6 === null
    ? 'it has no address yet'
    : `its address ${refusedIpv6} is not the one its hash gives in a routable network, so nothing is sent there`;

/**
 * An instance as it is told, which stays where it was while no placement of it is in force: what placed it was taken back, its machine
 * runs on, and the scheduler says again where it is (docs/scheduling.md).
 */
export function keepPlace(told: Instance, known: Instance | undefined): Instance {
  const isUnsaid = told.ipv6 === null && told.refusedIpv6 === null && told.reasonCode === AWAITING_NODE.code;
  if (!isUnsaid || !known) return told;
  const { placed, ipv6, refusedIpv6 } = known;
  return { ...told, placed: placed || told.placed, ipv6, refusedIpv6 };
}

/** Routed, if the name is its own: the address is known, the owner wants it to run, and it can. */
export function isRoutable(instance: Instance): boolean {
  // Else the observed phase does not count: it may lag behind, and a machine that is still starting answers the moment it can.
  return instance.ipv6 !== null && instance.desired === 'running' && !isBarred(instance);
}

/**
 * Who keeps a name that two hashes share: the one that ever had an address, then the earlier, then the smaller hash. The
 * order does not follow where an instance is now: one whose node is gone keeps its name while it waits for another.
 */
export function precedes(one: Instance, other: Instance): boolean {
  if (one.placed !== other.placed) return one.placed;
  return one.effectiveAt !== other.effectiveAt ? one.effectiveAt < other.effectiveAt : one.hash < other.hash;
}

/** Why the first of two that share a name has it. */
export function whyHolder(holder: Instance, other: Instance): string {
  if (holder.placed !== other.placed) return 'an instance that never had an address takes a name from nobody';
  return holder.effectiveAt === other.effectiveAt
    ? 'with equal times, the smaller hash has it'
    : `the earlier one has it, and it counts from ${sinceOf(holder)}`;
}

/** Since when an instance counts, for people: a date that its owner could choose freely is not believed. */
export const sinceOf = ({ effectiveAt, createdAt }: Instance): string =>
  effectiveAt === createdAt
    ? isoOf(createdAt)
    : `${isoOf(effectiveAt)}, when a core node first recorded it (its timestamp ${isoOf(createdAt)} is more than ten minutes older)`;

const isoOf = (seconds: number) => new Date(seconds * 1000).toISOString();

export function isSameInstance(one: Instance, other: Instance): boolean {
  return (
    one.hash === other.hash &&
    one.createdAt === other.createdAt &&
    one.effectiveAt === other.effectiveAt &&
    one.placed === other.placed &&
    one.ipv6 === other.ipv6 &&
    one.refusedIpv6 === other.refusedIpv6 &&
    one.desired === other.desired &&
    one.proxyHeader === other.proxyHeader &&
    one.phase === other.phase &&
    one.reason === other.reason &&
    one.reasonCode === other.reasonCode
  );
}
