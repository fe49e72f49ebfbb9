/** A DNS record that a custom domain needs. */
export interface DomainRule {
  readonly name: 'cname' | 'owner_proof';
  readonly dns: { readonly type: 'cname' | 'txt'; readonly name: string; readonly value: string };
}

/**
 * The records by which a name leads to an instance, and by which it names its owner (docs/operating.md, "Custom domains"). Who
 * is told them by a node computes them instead: another owner's address in them would give the name away.
 * @param zone of the node that serves the name
 */
export const domainRules = (name: string, owner: string, zone: string): DomainRule[] => [
  { name: 'cname', dns: { type: 'cname', name, value: `${name}.${zone}` } },
  { name: 'owner_proof', dns: { type: 'txt', name: `_control.${name}`, value: owner } },
];

const ZONE = /^(?:[a-z0-9-]{1,63}\.)*[a-z0-9-]{1,63}\.?$/i;

/** The zone of a node, of where it says that a name has to point; undefined where that is no place in a zone. */
export function zoneOfTarget(name: string, target: string): string | undefined {
  const zone = target.startsWith(`${name}.`) ? target.slice(name.length + 1) : '';
  return ZONE.test(zone) ? zone : undefined;
}
