import type { Socket } from 'node:net';
import type pg from 'pg';

/** What the types of `pg` leave out. */
interface Facts {
  /** The server process, as told when it connected; null before. */
  readonly processID: number | null;
  /** Whether the server waits for a query, rather than we for an answer. */
  readonly readyForQuery?: boolean;
}

const factsOf = (client: pg.Client) => client as unknown as Facts;

export const processIdOf = (client: pg.Client) => factsOf(client).processID;

/** Whether an answer is awaited, and how much the server has said until now. */
export const readState = (client: pg.Client) => ({
  isBusy: factsOf(client).readyForQuery === false,
  bytesRead: (client.connection.stream as Socket).bytesRead,
});

/** Ends the connection at once, whatever runs on it: queries that wait fail with the reason. */
export const cutOff = (client: pg.Client, reason: string) =>
  client.connection.stream.destroy(Object.assign(new Error(reason), { code: 'ETIMEDOUT' }));
