import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { AppError } from '@skerry/protocol';

const DNS_TIMEOUT_MS = 3_000;
const DNS_TRIES = 2;
/** A name with more addresses is looked at no further. */
const ADDRESSES_MAX = 32;

export interface ResolveOptions {
  /** Addresses that may be called. */
  readonly mayCall: (address: string) => boolean;
  /** `address:port` of name servers; the machine's own where left out. */
  readonly dnsServers?: readonly string[] | undefined;
}

const isLocalhost = (hostname: string) => /^(.+\.)?localhost\.?$/i.test(hostname);

/** What a name stands for. c-ares and not the system's resolver, whose four threads a dead name server would hold up. */
async function resolveName(hostname: string, dnsServers?: readonly string[]): Promise<string[]> {
  // RFC 6761, section 6.3
  if (isLocalhost(hostname)) return ['127.0.0.1', '::1'];
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (dnsServers) resolver.setServers(dnsServers);
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return addresses;
  const [failed] = answers;
  throw failed.status === 'rejected' ? failed.reason : new Error('no address');
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
          .slice(0, ADDRESSES_MAX)
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
