import { readFileSync } from 'node:fs';

/**
 * What clients send first for the name farm-manage-desk-seek.skerry.localhost, recorded where nothing answers. Of Chromium 156, by
 * version, the hello is in two datagrams, and comes again cut anew. Of ngtcp2 0.12.1 (Debian's `gtlsclient`) it is in one, twice.
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
