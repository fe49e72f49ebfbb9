import { readFileSync } from 'node:fs';

/**
 * What Chromium sends first, by version: two datagrams, and where nothing answers the same hello again, cut anew. Recorded from
 * Chromium 156 for the name farm-manage-desk-seek.skerry.localhost.
 */
export const REAL_FLIGHTS: readonly { readonly client: string; readonly datagrams: readonly Uint8Array[] }[] =
  Object.entries(
    JSON.parse(readFileSync(new URL('real-flights.json', import.meta.url), 'utf8')) as Record<
      string,
      string[]
    >,
  ).map(([client, wires]) => ({
    client,
    datagrams: wires.map((wire) => new Uint8Array(Buffer.from(wire, 'base64'))),
  }));
