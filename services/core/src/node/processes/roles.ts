/**
 * What a process of the core node does. `answer`: requests of clients and peers, gossip. `write`: what changes messages
 * unasked (sessions with peers, archives, deadlines, files that go). `deliver`: webhooks. `index`: chains.
 */
export const ROLES = ['answer', 'write', 'deliver', 'index'] as const;
export type Role = (typeof ROLES)[number];

/** Roles that one process alone fills at a time; the others that have it stand by. */
export const LED_ROLES = ['write', 'index'] as const satisfies readonly Role[];
export type LedRole = (typeof LED_ROLES)[number];
