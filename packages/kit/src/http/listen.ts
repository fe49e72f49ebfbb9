import { once } from 'node:events';
import { createServer } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import type { HttpServer } from './server.ts';

/** Where one can be asked that listens on a host: every address is this machine's own, IPv6 stands in brackets (RFC 3986, 3.2.2). */
export const urlOfListener = (scheme: 'http' | 'https', host: string, port: number) => {
  const name = host === '::' || host === '0.0.0.0' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${name}:${port}`;
};

/** What the settings are to blame for. */
const REFUSALS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use',
  EACCES: 'is not permitted',
  EADDRNOTAVAIL: 'cannot be opened: this machine does not have the address',
};

/** The failure to listen: PORT_IN_USE where the settings are to blame, with the port in its details where another one would do. */
export function explainListenFailure(error: unknown): unknown {
  const { code = '', port, address } = error as NodeJS.ErrnoException & { port?: number; address?: string };
  const refusal = REFUSALS[code];
  if (refusal === undefined) return error;
  const details = code === 'EADDRNOTAVAIL' ? {} : { port };
  return new AppError('PORT_IN_USE', `port ${port} of ${address} ${refusal}`, { cause: error, details });
}

/** Connections that the kernel holds until they are accepted: a crowd that comes at once is not turned away for seconds. */
const BACKLOG = 4_096;

/**
 * Listens, and says where: port 0 becomes the one the system chose.
 * @param isShared others of the same user may listen there, too (SO_REUSEPORT). Throws PORT_IN_USE.
 */
export async function listen(app: HttpServer, host: string, port: number, isShared = false): Promise<string> {
  try {
    const options = { host, port, backlog: BACKLOG, reusePort: isShared };
    await app.listen(options);
  } catch (error) {
    throw explainListenFailure(error);
  }
  const address = app.server.address();
  const actualPort = typeof address === 'object' && address ? address.port : port;
  return urlOfListener('http', host, actualPort);
}

/**
 * Why a port cannot be listened on; undefined where it can. Without a host, a listener on any address of the machine is seen.
 * @param isShared those who share it do not count
 */
export async function findListenFailure(
  port: number,
  host?: string,
  isShared = false,
): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer();
  try {
    server.listen({ port, reusePort: isShared, ...(host === undefined ? {} : { host }) });
    await once(server, 'listening');
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
  server.close();
  await once(server, 'close');
  return undefined;
}

/**
 * A service that cannot listen says so before it makes or changes anything; `listen` finds whoever comes between. Throws PORT_IN_USE.
 * @param isShared as in `listen`
 */
export async function checkPort(host: string, port: number, isShared = false): Promise<void> {
  const failure = await findListenFailure(port, host, isShared);
  if (failure) throw explainListenFailure(failure);
}
