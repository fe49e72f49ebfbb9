import { fieldsOf, isItemHash64, parseDomainName } from '@skerry/protocol';

/** An owner's wish that a host name leads to an instance: one member of the aggregate `domains`. */
export interface DomainClaim {
  /** Lower case, without a dot at its end. */
  readonly name: string;
  readonly owner: string;
  readonly instanceId: string;
}

/** Of one owner; the rest is not looked at. */
const CLAIMS_MAX = 100;

/**
 * What an owner's aggregate `domains` says of instances. Entries that are null (detached), of websites or programs, or
 * malformed say nothing. Pure.
 */
export function readClaims(owner: string, aggregate: unknown): DomainClaim[] {
  if (typeof aggregate !== 'object' || aggregate === null) return [];
  return Object.entries(aggregate)
    .flatMap(([text, entry]): DomainClaim[] => {
      const name = parseDomainName(text);
      if (name === undefined || typeof entry !== 'object' || entry === null) return [];
      const { message_id: instanceId, type, programType } = entry as Record<string, unknown>;
      const isInstance = (type ?? programType) === 'instance';
      return isInstance && typeof instanceId === 'string' && isItemHash64(instanceId)
        ? [{ name, owner, instanceId }]
        : [];
    })
    .slice(0, CLAIMS_MAX);
}

/** What the DNS says of a claim. `unknown`: it could not be asked now. */
export interface DomainProof {
  readonly cname: boolean | 'unknown';
  readonly ownerProof: boolean | 'unknown';
}

/** A claim with what the DNS said of it last. */
export interface ProvenClaim extends DomainClaim {
  readonly proof: DomainProof;
}

/** Where a name points, and why it does or does not lead to its instance. */
export interface DomainState extends ProvenClaim {
  readonly isActive: boolean;
}

const ANSWERS = [true, false, 'unknown'];

function isDomainState(value: unknown): value is DomainState {
  const { name, owner, instanceId, isActive, proof } = fieldsOf(value);
  const { cname, ownerProof } = fieldsOf(proof);
  return (
    [name, owner, instanceId].every((one) => typeof one === 'string') &&
    typeof isActive === 'boolean' &&
    [cname, ownerProof].every((one) => ANSWERS.includes(one as boolean))
  );
}

/** What a node kept of them. Throws where it is something else. */
export function parseDomainStates(value: unknown): readonly DomainState[] {
  if (!Array.isArray(value) || !value.every(isDomainState)) throw new Error('it is not a list of domains');
  return value;
}

const keyOf = ({ name, owner, instanceId }: DomainClaim) => `${name} ${owner} ${instanceId}`;

/**
 * Which claims are in force: those whose owner is named by the DNS and whose name points here. What could not be asked
 * stays as it was. Where two owners are named for one name, the one who held it keeps it, else the first address counts.
 * Pure.
 */
export function decideDomains(claims: readonly ProvenClaim[], before: readonly DomainState[]): DomainState[] {
  const held = new Set(before.filter(({ isActive }) => isActive).map(keyOf));
  const wasActive = (claim: DomainClaim) => held.has(keyOf(claim));
  const isProven = (claim: ProvenClaim) => {
    const { cname, ownerProof } = claim.proof;
    if (cname === false || ownerProof === false) return false;
    return (cname === true && ownerProof === true) || wasActive(claim);
  };
  const order = [...claims].sort(
    (one, other) =>
      Number(wasActive(other)) - Number(wasActive(one)) ||
      (one.owner + one.instanceId).localeCompare(other.owner + other.instanceId),
  );
  const taken = new Set<string>();
  const active = new Set<DomainClaim>();
  for (const claim of order) {
    if (!isProven(claim) || taken.has(claim.name)) continue;
    taken.add(claim.name);
    active.add(claim);
  }
  return claims.map((claim) => ({ ...claim, isActive: active.has(claim) }));
}
