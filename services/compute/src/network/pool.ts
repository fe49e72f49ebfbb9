import { join } from 'node:path';
import { loadOrCreateText } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { chooseIpv4Pool, parseIpv4Pool } from './ipv4.ts';
import { parseSourceAddress } from './uplink.ts';

const POOL_FILE = 'ipv4-pool';
/** Any address beyond this machine: it is only asked how packets to it would leave (RFC 5737, TEST-NET-3). */
const FAR_AWAY = '203.0.113.1';

/**
 * The node's private IPv4 network: the operator's, or one that nothing on this machine used when it was made, kept since.
 * Throws INVALID_CONFIG when a kept or given value is damaged.
 */
export async function loadIpv4Pool(dataDir: string, given: string | undefined): Promise<string> {
  const pool =
    given ??
    (await loadOrCreateText(
      join(dataDir, POOL_FILE),
      async () => chooseIpv4Pool(await listNetworks(), Math.random()),
      0o644,
    ));
  try {
    return parseIpv4Pool(pool);
  } catch (error) {
    throw new AppError('INVALID_CONFIG', `the IPv4 pool: ${(error as Error).message}`, { cause: error });
  }
}

async function listNetworks(): Promise<string[]> {
  const shown = await run('ip', ['-j', '-4', 'route', 'show', 'table', 'all']);
  const routes = JSON.parse(shown || '[]') as { dst: string }[];
  return routes.map(({ dst }) => dst).filter((network) => network !== 'default');
}

/** The node's IPv4 address towards others; undefined where it has none. */
export async function findHostIpv4(): Promise<string | undefined> {
  return run('ip', ['-j', '-4', 'route', 'get', FAR_AWAY]).then(parseSourceAddress, () => undefined);
}
