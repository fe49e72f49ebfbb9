import { createHash } from 'node:crypto';
import { AppError } from '@skerry/protocol';

/** Ports of the node's own IPv4 address that lead to ports of a guest: guest port -> node port. */
export type HostPorts = Readonly<Record<number, number>>;

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** Ports below it are of programs of the system. */
const FORWARDED_FROM = 1024;
const PORT_MAX = 65_535;

/** `24000-32767`; throws where it is none. */
export function parsePortRange(text: string): PortRange {
  const [first = 0, last = 0] = /^[0-9]{1,5}-[0-9]{1,5}$/.test(text) ? text.split('-').map(Number) : [];
  if (first < FORWARDED_FROM || last > PORT_MAX || first > last)
    throw new Error(`expected two ports from ${FORWARDED_FROM} to ${PORT_MAX}, such as 24000-32767`);
  return { first, last };
}

/** Ports of a guest that anyone may reach. */
export interface OpenPorts {
  /** By TCP. */
  readonly allowedPorts: readonly number[];
  readonly allowedUdpPorts?: readonly number[] | undefined;
}

const SSH_PORT = 22;
/** Beside ssh, which always has one. */
export const FORWARDED_PORTS_MAX = 20;

/** The guest ports that get a port of the node: ssh, then the lowest allowed by TCP, then the lowest by UDP alone. Pure. */
export function listForwarded({ allowedPorts, allowedUdpPorts = [] }: OpenPorts): number[] {
  const rising = (ports: readonly number[]) => [...ports].sort((one, other) => one - other);
  const others = new Set([...rising(allowedPorts), ...rising(allowedUdpPorts)]);
  others.delete(SSH_PORT);
  return [SSH_PORT, ...[...others].slice(0, FORWARDED_PORTS_MAX)];
}

/** By what the node's port for a guest's leads there; to ssh, always by TCP. Pure. */
export function protocolsOf(
  port: number,
  { allowedPorts, allowedUdpPorts = [] }: OpenPorts,
): { readonly tcp: boolean; readonly udp: boolean } {
  return { tcp: port === SSH_PORT || allowedPorts.includes(port), udp: allowedUdpPorts.includes(port) };
}

/**
 * The node's port for a guest's. It follows from both, so that a port that was taken back and given again mostly gets the
 * same; where that one is taken, the next free one. Pure. Throws NO_CAPACITY.
 */
export function chooseHostPort(
  instanceId: string,
  guestPort: number,
  { first, last }: PortRange,
  isTaken: (port: number) => boolean,
): number {
  const size = last - first + 1;
  const digest = createHash('sha256').update(`port\n${instanceId}\n${guestPort}`).digest();
  const start = digest.readUInt32BE(0) % size;
  for (let tried = 0; tried < size; tried++) {
    const port = first + ((start + tried) % size);
    if (!isTaken(port)) return port;
  }
  throw new AppError('NO_CAPACITY', `every port from ${first} to ${last} of this server is in use`);
}

/** States in /proc/net/tcp and /proc/net/udp of what takes from anyone (include/net/tcp_states.h): TCP_LISTEN, TCP_CLOSE. */
const LISTENING = { tcp: '0A', udp: '07' };

/** Ports that programs of this machine listen on, from the text of a file of /proc/net such as tcp6 (proc(5)). */
export function parseListening(text: string, protocol: keyof typeof LISTENING): number[] {
  return text.split('\n').flatMap((line) => {
    const [, local, , state] = line.trim().split(/\s+/);
    if (state !== LISTENING[protocol] || !local) return [];
    return [Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16)];
  });
}

interface NftMap {
  readonly name?: string;
  readonly table?: string;
  readonly elem?: readonly unknown[];
}

/** Ports that other nodes of this machine lead to their guests, from `nft -j list maps`. */
export function parseForwardedElsewhere(
  json: string,
  ownTable: string,
  mapNames: readonly string[],
): number[] {
  const { nftables = [] } = JSON.parse(json || '{}') as { nftables?: { map?: NftMap }[] };
  return nftables.flatMap(({ map }) => {
    if (!map?.name || !mapNames.includes(map.name)) return [];
    if (map.table === ownTable || !map.table?.startsWith('skerry_')) return [];
    return (map.elem ?? []).flatMap((pair) =>
      Array.isArray(pair) && typeof pair[0] === 'number' ? [pair[0]] : [],
    );
  });
}
