import { domainRules, zoneOfTarget } from '@skerry/protocol/api/compute/domain-rules';
import { fields, oneOf, type Read, rows, text } from '../read.ts';

const found = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null);
const rule = fields({
  name: oneOf('cname', 'owner_proof'),
  dns: fields({ type: text, name: text, value: text }),
});

/** Domains as a compute node tells them. */
export const readDomains = rows(
  fields({
    name: text,
    owner: text,
    item_hash: text,
    active: (value) => value === true,
    cname: found,
    owner_proof: found,
    rules: rows(rule),
  }),
);

/** What an owner signed of domains. */
export const readClaims = fields({ aggregates: rows(fields({ content: (value: unknown) => value })) });

/** A record that a domain needs, and whether it was found; null: no name server answers. */
export interface Needed {
  readonly type: string;
  readonly name: string;
  readonly value: string;
  readonly isFound: boolean | null;
}

/** A name that its owner leads to a machine. */
export interface Domain {
  readonly name: string;
  readonly isActive: boolean;
  /** Undefined where the node does not know it, or serves none. */
  readonly needed: readonly Needed[] | undefined;
}

interface Told {
  readonly claims: Read<typeof readClaims> | undefined;
  readonly atNode: Read<typeof readDomains> | undefined;
}

type ToldDomain = Read<typeof readDomains>[number];

/** Of the node are its zone and what it found; the records follow from the name and its owner. */
function neededFor(name: string, owner: string, told: ToldDomain): Needed[] | undefined {
  const target = told.rules.find((one) => one.name === 'cname')?.dns.value ?? '';
  const zone = zoneOfTarget(name, target);
  return zone === undefined
    ? undefined
    : domainRules(name, owner, zone).map(({ name: of, dns }) => ({ ...dns, isFound: told[of] }));
}

/** Names that an owner has claimed for a machine, with what its node says of them, in their order. */
export function domainsOf(id: string, owner: string, { claims, atNode }: Told): Domain[] {
  const claimed = claims?.aggregates.flatMap(({ content }) =>
    typeof content === 'object' && content !== null ? Object.entries(content) : [],
  );
  const names = (claimed ?? []).flatMap(([name, claim]: [string, unknown]) =>
    typeof claim === 'object' && claim !== null && 'message_id' in claim && claim.message_id === id
      ? [name]
      : [],
  );
  return names.sort().map((name) => {
    const told = atNode?.find(
      (one) => one.name === name && one.item_hash === id && one.owner.toLowerCase() === owner.toLowerCase(),
    );
    return {
      name,
      isActive: told?.active ?? false,
      needed: told && neededFor(name, owner, told),
    };
  });
}
