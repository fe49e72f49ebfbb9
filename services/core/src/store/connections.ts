/**
 * Connections of one process to the database. Few are enough: a query takes a millisecond, and two cores run two of them at a time. What
 * clients ask for has most of them and never all: writing, and the question for the node's health, wait for nobody's reads.
 */
export const CONNECTIONS = {
  all: 16,
  /** For answers, but for taking in what clients send. */
  answers: 12,
  /** Of these: lists, totals, aggregates and histories that take long. */
  lists: 4,
  /** Those that may be cheap, while all that take long are running. */
  tries: 2,
  /** Messages and pages for peers. */
  pages: 2,
  /** Digests of all that is derived, and as many of all instances. The rest is for what takes a millisecond, as a message by its hash does. */
  digests: 1,
} as const;

/** A process has one more while it asks the server about those that are silent. */
const PER_PROCESS = CONNECTIONS.all + 1;

/**
 * What is wrong with so many processes of the node on one database; undefined where nothing is. Pure.
 * @param room connections that the server lets them have together; undefined: nobody knows
 */
export function adviseOnConnections(processes: number, room: number | undefined): string | undefined {
  const wanted = processes * PER_PROCESS;
  if (room === undefined || wanted <= room) return undefined;
  const many = processes === 1 ? 'one process' : `${processes} processes`;
  return `${many} of this node may open ${wanted} connections to the database, which gives them ${room}: raise max_connections, or run fewer processes (docs/roles.md)`;
}

/** How many of a pool's connections are for answers: of a smaller pool as large a part, and one at least. */
export const answersOf = (max: number): number =>
  Math.max(1, Math.floor((max * CONNECTIONS.answers) / CONNECTIONS.all));
