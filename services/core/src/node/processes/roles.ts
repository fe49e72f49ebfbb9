/**
 * What a process of the core node does. `answer`: requests of clients and peers, gossip. `write`: what changes messages
 * unasked (sessions with peers, archives, deadlines, files that go). `deliver`: webhooks. `index`: chains.
 */
export const ROLES = ['answer', 'write', 'deliver', 'index'] as const;
export type Role = (typeof ROLES)[number];

/** Roles that one process alone fills at a time; the others that have it stand by. */
export const LED_ROLES = ['write', 'index'] as const satisfies readonly Role[];
export type LedRole = (typeof LED_ROLES)[number];

/** Whether messages come in at a process with these roles: from clients and peers, or what the node fetches itself. */
export const takesMessages = (roles: readonly Role[]) => roles.includes('answer') || roles.includes('write');

/** What nobody does while a role is vacant. */
const WAITS: Readonly<Record<Role, string>> = {
  answer: 'clients and peers are not answered',
  write: 'sessions with peers, missing files, archives and deadlines wait',
  deliver: 'webhooks wait',
  index: 'chains are not indexed',
};

/** Who lives, and which roles somebody leads. */
export interface Filled {
  readonly processes: readonly { readonly roles: readonly string[] }[];
  readonly led: ReadonlySet<string>;
}

const isLedRole = (role: Role) => LED_ROLES.some((led) => led === role);

/** Which of the roles that a node needs are vacant, and what waits for that; undefined where none is. Pure. */
export function adviseOnRoles({ processes, led }: Filled, needed: readonly Role[]): string | undefined {
  const vacant = needed.flatMap((role) => {
    if (!processes.some(({ roles }) => roles.includes(role)))
      return [`no process has the role ${role} (SKERRY_CORE_ROLES): ${WAITS[role]}`];
    return isLedRole(role) && !led.has(role) ? [`no process leads ${role} yet: ${WAITS[role]}`] : [];
  });
  return vacant.length === 0 ? undefined : vacant.join('; ');
}
