import { createReach, type Logger } from '@skerry/kit';
import type { ComputeConfig } from '../config.ts';
import type { Instances } from '../instances/instances.ts';
import { ipv4LinkOf } from '../network/ipv4.ts';
import { DomainRegistry, type NamedInstance } from './registry.ts';

type DomainConfig = Pick<
  ComputeConfig,
  'coreUrl' | 'dataDir' | 'domainZone' | 'domainResolvers' | 'allowPrivate'
>;

export interface DomainDeps {
  readonly instances: Instances;
  readonly ipv4Pool: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** The custom domains of the node's instances; undefined where the node has no zone for them. */
export async function openDomains(
  config: DomainConfig,
  { instances, ipv4Pool, log, signal }: DomainDeps,
): Promise<DomainRegistry | undefined> {
  const { coreUrl, dataDir, domainZone: zone, domainResolvers: resolvers, allowPrivate } = config;
  if (zone === undefined) return undefined;
  const domains = new DomainRegistry({
    coreUrl,
    dataDir,
    rules: { zone, resolvers, mayReach: createReach(allowPrivate) },
    instances: () => listNamed(instances, ipv4Pool),
    log,
    signal,
  });
  await domains.load();
  return domains;
}

function listNamed(instances: Instances, ipv4Pool: string): NamedInstance[] {
  return instances.list().flatMap(({ place, record: { wanted, ipv4 } }) =>
    wanted.owner === undefined
      ? []
      : [
          {
            id: place.id,
            owner: wanted.owner,
            ipv6: place.guest,
            ipv4: ipv4 ? ipv4LinkOf(ipv4Pool, ipv4.link).guest : null,
            proxyProtocol: wanted.proxyProtocol,
          },
        ],
  );
}
