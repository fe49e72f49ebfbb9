import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { AppError } from '@skerry/protocol';

/** The addresses behind a host setting: `localhost` means loopback of both families. Throws INVALID_CONFIG. */
export async function findListenHosts(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    const found = await lookup(host, { all: true });
    return [...new Set(found.map(({ address }) => address))];
  } catch (error) {
    throw new AppError('INVALID_CONFIG', `the listening host ${host} has no address`, { cause: error });
  }
}

const NOT_TO_BE_HAD = new Set(['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL']);

/** The failure to listen, in words of ours where it is the setting's fault. */
export function explainListenFailure(error: unknown): unknown {
  const { code, port, address } = error as NodeJS.ErrnoException & { port?: number; address?: string };
  if (code === undefined || !NOT_TO_BE_HAD.has(code)) return error;
  return new AppError('PORT_IN_USE', `cannot listen on port ${port} of ${address} (${code})`, {
    cause: error,
  });
}
