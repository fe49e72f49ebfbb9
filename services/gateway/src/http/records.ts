import { AppError, hostnameOf, type ItemHash, prefixOfHostname } from '@skerry/protocol';
import type { DomainRecord } from '@skerry/protocol/api/gateway';
import { isRoutable } from '../table/instance.ts';
import { fullHostname } from '../table/named-route.ts';
import type { InstanceTable } from '../table/table.ts';

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
