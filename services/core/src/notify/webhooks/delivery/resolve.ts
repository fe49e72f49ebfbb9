import { isIP, type LookupFunction } from 'node:net';
import { resolveName } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

export interface ResolveOptions {
  /** Addresses that may be called. */
  readonly mayCall: (address: string) => boolean;
  /** `address:port` of name servers; the machine's own where left out. */
  readonly dnsServers?: readonly string[] | undefined;
}

const refused = () => new AppError('WEBHOOK_URL_REFUSED', 'the host has an address that is not public');

/** Throws WEBHOOK_URL_REFUSED where the host of a URL is an IP address that may not be called. */
export function checkLiteralHost(hostname: string, mayCall: ResolveOptions['mayCall']): void {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0 && !mayCall(bare)) throw refused();
}

/**
 * The lookup of a connection: the addresses that were judged are the ones that are connected to, so that a name cannot
 * change its mind in between (DNS rebinding). One address that may not be called refuses the whole name.
 */
export function createCheckedLookup({ mayCall, dnsServers }: ResolveOptions): LookupFunction {
  return (hostname, options, callback) => {
    resolveName(hostname, dnsServers).then(
      (all) => {
        const addresses = all
          .map((address) => ({ address, family: isIP(address) }))
          .filter(({ family }) => !options.family || options.family === family);
        if (addresses.length === 0 || !all.every(mayCall)) callback(refused(), []);
        else if (options.all) callback(null, addresses);
        else callback(null, addresses[0]!.address, addresses[0]!.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}
