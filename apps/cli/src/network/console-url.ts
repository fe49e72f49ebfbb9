import { findListenFailure } from '@skerry/kit';

const IPV4_LOOPBACK = '127.0.0.1';
const IPV6_LOOPBACK = '::1';

/**
 * Where a browser finds the console of a core node of this machine. By a name: passkeys belong to names, and do not work at
 * addresses that are numbers. Browsers try IPv6 first, so it stays a number where somebody else has the port there.
 */
export async function findConsoleUrl(coreUrl: string): Promise<string> {
  const url = new URL(coreUrl);
  if (url.hostname !== IPV4_LOOPBACK) return url.href;
  const failure = await findListenFailure(Number(url.port), IPV6_LOOPBACK);
  if (failure?.code !== 'EADDRINUSE') url.hostname = 'localhost';
  return url.href;
}
