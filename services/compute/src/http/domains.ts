import { answer, type Handlers } from '@skerry/kit';
import { domainRules } from '@skerry/protocol/api/compute/domain-rules';
import type { NODE_API } from '@skerry/protocol/api/compute/node';
import type { DomainRegistry } from '../domains/registry.ts';

export interface DomainSources {
  /** undefined where the node has no zone for custom domains. */
  readonly domains: DomainRegistry | undefined;
  readonly zone: string | undefined;
  readonly hostIpv4: () => string | undefined;
}

const TTL_SECONDS = 60;

type DomainHandlers = Pick<Handlers<typeof NODE_API>, 'listDomainRoutes' | 'listDomains' | 'getZone'>;

/** What custom domains this node serves: for the gateway beside it, for a name server, and for owners who ask why. */
export function domainHandlers({ domains, zone, hostIpv4 }: DomainSources): DomainHandlers {
  const routes = () => domains?.routes(hostIpv4() ?? null) ?? [];
  return {
    listDomainRoutes: routes,
    listDomains: () =>
      (domains?.list() ?? []).map(({ name, owner, instanceId, proof, isActive }) => ({
        name,
        owner,
        item_hash: instanceId,
        active: isActive,
        cname: proof.cname,
        owner_proof: proof.ownerProof,
        rules: domainRules(name, owner, zone ?? ''),
      })),
    // Lines of a zone file (RFC 1035, 5): IPv4 leads to this node, IPv6 to the instance itself.
    getZone() {
      const lines = routes().flatMap(({ name, ipv6, ipv4 }) => [
        `${name}.${zone}. ${TTL_SECONDS} IN AAAA ${ipv6}`,
        ...(ipv4.public ? [`${name}.${zone}. ${TTL_SECONDS} IN A ${ipv4.public}`] : []),
      ]);
      return answer(200, lines.map((line) => `${line}\n`).join(''), { 'content-type': 'text/plain' });
    },
  };
}
