import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { explainListenFailure } from '@skerry/kit';

/** The addresses behind a host setting: `localhost` means loopback of both families. Throws INVALID_CONFIG where it has none. */
export async function findListenHosts(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    const found = await lookup(host, { all: true });
    return [...new Set(found.map(({ address }) => address))];
  } catch (error) {
    throw explainListenFailure(error, host);
  }
}
