import { Resolver } from 'node:dns/promises';
import { connect } from 'node:net';

export interface Probes {
  /** `1.1.1.1:443` */
  readonly ipv4: string;
  /** `[2606:4700:4700::1111]:443` */
  readonly ipv6: string;
  /** A name that every resolver knows, with addresses of both families. */
  readonly name: string;
}

export interface WayOut {
  /** A connection to an address far away. */
  readonly egress: boolean;
  /** A well-known name is resolved. */
  readonly dns: boolean;
  /** This node's own name is resolved; always so for a bare address. */
  readonly domain: boolean;
  /** The node's own page answers under its name. */
  readonly http: boolean;
}

const PROBE_LIMIT_MS = 3_000;

function parseTarget(target: string): { host: string; port: number } {
  const at = target.lastIndexOf(':');
  return { host: target.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(target.slice(at + 1)) };
}

function canConnect(host: string, port: number, family: 0 | 4 | 6 = 0): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, family });
    const finish = (result: boolean) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(PROBE_LIMIT_MS, () => finish(false));
    socket.once('connect', () => finish(true)).once('error', () => finish(false));
  });
}

async function resolves(name: string, family: 4 | 6): Promise<boolean> {
  const resolver = new Resolver({ timeout: PROBE_LIMIT_MS, tries: 1 });
  const asked = family === 4 ? resolver.resolve4(name) : resolver.resolve6(name);
  return asked.then(
    (found) => found.length > 0,
    () => false,
  );
}

/** How this machine gets out by one family of addresses. @param ownUrl under which others reach the node */
export async function readWayOut(family: 4 | 6, probes: Probes, ownUrl: string): Promise<WayOut> {
  const { host, port } = parseTarget(family === 4 ? probes.ipv4 : probes.ipv6);
  const own = new URL(ownUrl);
  const name = own.hostname.replace(/^\[|\]$/g, '');
  const isAddress = /^[0-9.]+$/.test(name) || name.includes(':');
  const ownPort = Number(own.port) || (own.protocol === 'https:' ? 443 : 80);
  const [egress, dns, domain, http] = await Promise.all([
    canConnect(host, port, family),
    resolves(probes.name, family),
    isAddress || name === 'localhost' || resolves(name, family),
    canConnect(name, ownPort, isAddress ? 0 : family),
  ]);
  return { egress, dns, domain, http };
}
