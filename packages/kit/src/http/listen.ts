import { once } from 'node:events';
import { createServer, type ListenOptions } from 'node:net';
import { AppError, type ErrorCode } from '@skerry/protocol/forms';
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
};

type ListenFailure = NodeJS.ErrnoException & {
  readonly port?: number;
  readonly address?: string;
  readonly hostname?: string;
};

/**
 * A host that is none of this machine's, as a failure that has it in its details. An address may come, and so may the answer of a
 * name server that is away; a name or an address that is none stays so.
 */
function explainHost({ code, address, hostname = '' }: ListenFailure): [ErrorCode, string] | undefined {
  switch (code) {
    case 'ENOTFOUND':
      return ['INVALID_CONFIG', `cannot listen on ${hostname}: nothing has this name or address`];
    case 'EAI_AGAIN':
      return ['UPSTREAM_UNAVAILABLE', `cannot listen on ${hostname}: no name server answers`];
    case 'EINVAL':
      return [
        'INVALID_CONFIG',
        `cannot listen on ${address}: an address of one link needs its interface, such as fe80::1%eth0`,
      ];
    case 'EADDRNOTAVAIL':
      return ['PORT_IN_USE', `cannot listen on ${address}: this computer does not have the address`];
    default:
      return undefined;
  }
}

/**
 * The failure to listen, where the settings are to blame: PORT_IN_USE with the port in its details where another one would do;
 * INVALID_CONFIG, UPSTREAM_UNAVAILABLE or PORT_IN_USE with the host in its details where another host would.
 * @param host as it was set; by default as the failure names it
 */
export function explainListenFailure(error: unknown, host?: string): unknown {
  const failure = error as ListenFailure;
  const { code = '', port, address, hostname } = failure;
  const [hostCode, why] = explainHost(failure) ?? [];
  if (hostCode !== undefined && why !== undefined)
    return new AppError(hostCode, why, { cause: error, details: { host: host ?? hostname ?? address } });
  const refusal = REFUSALS[code];
  if (refusal === undefined) return error;
  return new AppError('PORT_IN_USE', `port ${port} of ${address} ${refusal}`, {
    cause: error,
    details: { port },
  });
}

/** Connections that the kernel holds until they are accepted: a crowd that comes at once is not turned away for seconds. */
const BACKLOG = 4_096;

/** "::" is every address of a machine; where the kernel has no IPv6 (ipv6.disable=1), it has those of IPv4 alone. */
async function everyAddress<T extends string | undefined>(host: T): Promise<T | '0.0.0.0'> {
  if (host !== '::') return host;
  return (await tryToListen({ host, port: 0 }))?.code === 'EAFNOSUPPORT' ? '0.0.0.0' : host;
}

/**
 * Listens, and says where: port 0 becomes the one the system chose.
 * @param isShared others of the same user may listen there, too (SO_REUSEPORT). Throws as `explainListenFailure` says.
 */
export async function listen(app: HttpServer, host: string, port: number, isShared = false): Promise<string> {
  try {
    const options = { host: await everyAddress(host), port, backlog: BACKLOG, reusePort: isShared };
    await app.listen(options);
  } catch (error) {
    throw explainListenFailure(error, host);
  }
  const address = app.server.address();
  const actualPort = typeof address === 'object' && address ? address.port : port;
  return urlOfListener('http', host, actualPort);
}

async function tryToListen(options: ListenOptions): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer();
  try {
    server.listen(options);
    await once(server, 'listening');
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
  server.close();
  await once(server, 'close');
  return undefined;
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
  const at = await everyAddress(host);
  return await tryToListen({ port, reusePort: isShared, ...(at === undefined ? {} : { host: at }) });
}

/**
 * A service that cannot listen says so before it makes or changes anything; `listen` finds whoever comes between. Throws as it does.
 * @param isShared as in `listen`
 */
export async function checkPort(host: string, port: number, isShared = false): Promise<void> {
  const failure = await findListenFailure(port, host, isShared);
  if (failure) throw explainListenFailure(failure, host);
}
