import { AppError, hostnameOf, type ItemHash, prefixOfHostname } from '@skerry/protocol';
import Type, { type Static } from 'typebox';
import { fullHostname } from '../table/compile.ts';
import { isRoutable } from '../table/instance.ts';
import type { InstanceTable } from '../table/table.ts';
import { WHY_STEPS } from '../table/why.ts';

/** Instance domain record (specification of the gateway, "Resources and their fields"). */
export const DomainRecord = Type.Object({
  instance_hash: Type.String(),
  subdomain: Type.String({ description: 'four words joined by hyphens, without the parent domain' }),
  url: Type.String({ description: 'subdomain and parent domain, without a scheme' }),
  ipv6: Type.Union([Type.String(), Type.Null()], { description: 'null while the instance has no address' }),
  active: Type.Boolean({
    description:
      'routed: the name is its own (the earliest of those that share it), its address is known, and its owner wants it to run. ' +
      'Whether a server inside answers yet does not count',
  }),
});
export type DomainRecord = Static<typeof DomainRecord>;

/** Gateway status record; the ports are an addition. */
export const StatusRecord = Type.Object({
  instance_count: Type.Integer({ description: 'instances that the gateway knows' }),
  route_count: Type.Integer({ description: 'of these, the active ones' }),
  last_sync_time: Type.Number({
    description: 'Unix seconds of the last full sync or applied change, 0 before the first',
  }),
  domain: Type.String(),
  http_port: Type.Integer(),
  https_port: Type.Integer(),
});
export type StatusRecord = Static<typeof StatusRecord>;

/** What POST /api/sync answers. */
export const SyncRecord = Type.Object({
  ...StatusRecord.properties,
  added: Type.Integer(),
  removed: Type.Integer(),
  changed: Type.Integer(),
  held_back: Type.Optional(
    Type.Integer({ description: 'instances that the core node suddenly lacks and whose routes are kept' }),
  ),
  duration_ms: Type.Number(),
});
export type SyncRecord = Static<typeof SyncRecord>;

/** Why a name answers or does not: the chain from the message to the last connection (docs/decisions.md 17). */
export const WhyRecord = Type.Object({
  hostname: Type.String(),
  instance_hash: Type.Union([Type.String(), Type.Null()]),
  ipv6: Type.Union([Type.String(), Type.Null()]),
  chain: Type.Array(
    Type.Object({
      step: Type.String({ enum: [...WHY_STEPS] }),
      ok: Type.Union([Type.Boolean(), Type.Null()], { description: 'null where it cannot be told' }),
      detail: Type.String(),
    }),
  ),
  missing: Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()], {
    description: 'the first thing that is missing; null where nothing is',
  }),
});
export type WhyRecord = Static<typeof WhyRecord>;

/** For any hash, known or not: its name is a pure function of it (docs/decisions.md 16). */
export function recordOfHash(table: InstanceTable, hash: ItemHash): DomainRecord {
  const subdomain = hostnameOf(hash);
  const instance = table.find(hash);
  const [holder] = table.listNamed(subdomain);
  return {
    instance_hash: hash,
    subdomain,
    url: fullHostname(subdomain, table.domain),
    ipv6: instance?.ipv6 ?? null,
    active: instance !== undefined && holder === instance && isRoutable(instance),
  };
}

/** Of the instance that has a name. Throws INVALID_HOSTNAME, HOSTNAME_NOT_FOUND. */
export function recordOfName(table: InstanceTable, name: string): DomainRecord {
  prefixOfHostname(name);
  const [holder] = table.listNamed(name.toLowerCase());
  if (!holder)
    throw new AppError('HOSTNAME_NOT_FOUND', `no instance that this gateway knows has the name ${name}`);
  return recordOfHash(table, holder.hash);
}
