import { readFile } from 'node:fs/promises';
import { endianness, totalmem } from 'node:os';
import { STALL_RULE } from '../../stall-rule.ts';

/** What the kernel has of one socket, in bytes: what the peer has not acknowledged, and what is not read. */
export interface Queues {
  readonly unsent: number;
  readonly unread: number;
}

/** Both ends of a connection, as Node spells them; undefined where the connection is gone. */
export interface Ends {
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/** What a look finds of the machine's TCP. */
export interface TcpQueues {
  readonly bySocket: ReadonlyMap<string, Queues>;
  /** Of all sockets, whoever has them. */
  readonly bytes: number;
}

/** Of kernels with 4 KiB pages and larger ones: too little rather than too much. */
const PAGE_BYTES = 4096;
const WORD_BYTES = 4;
const HEX_BYTES = 2;
const PORT_CHARS = ':0000'.length;
/** Between the addresses and the queues: ` 01 `, the state. */
const STATE_CHARS = ' 01 '.length;
const QUEUE_CHARS = 8;
const HEX = 16;
const IPV6_GROUPS = 8;

const isLittle = endianness() === 'LE';

function bytesOfIpv4(text: string): number[] {
  return text.split('.').map(Number);
}

function bytesOfIpv6(text: string): number[] {
  const [bare] = text.split('%', 1);
  const hexed = bare!.replace(/[0-9]+\.[0-9.]+$/, (dotted) =>
    Buffer.from(bytesOfIpv4(dotted)).toString('hex').replace(/^.{4}/, '$&:'),
  );
  const [before = [], after] = hexed.split('::').map((part) => (part ? part.split(':') : []));
  const zeros = after ? IPV6_GROUPS - before.length - after.length : 0;
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...(after ?? [])];
  return [...Buffer.from(groups.map((group) => group.padStart(HEX_BYTES * 2, '0')).join(''), 'hex')];
}

/** As /proc/net/tcp spells it: each word as a number of this machine. */
function spell(address: string, port: number): string {
  const bytes = Buffer.from(address.includes(':') ? bytesOfIpv6(address) : bytesOfIpv4(address));
  for (let at = 0; isLittle && at < bytes.length; at += WORD_BYTES)
    bytes.subarray(at, at + WORD_BYTES).reverse();
  return `${bytes.toString('hex')}:${port.toString(HEX).padStart(HEX_BYTES * 2, '0')}`.toUpperCase();
}

/** By what a socket is found among the queues; undefined where it is not connected any more. */
export function socketKey({ localAddress, localPort, remoteAddress, remotePort }: Ends): string | undefined {
  if (!localAddress || !remoteAddress) return undefined;
  return `${spell(localAddress, localPort!)} ${spell(remoteAddress, remotePort!)}`;
}

/** The same, spelled once for each connection: all of 20,000, twice a second, would take a CPU. */
export class SocketKeys {
  readonly #known = new WeakMap<Ends, string>();

  of(ends: Ends): string | undefined {
    const known = this.#known.get(ends);
    if (known !== undefined) return known;
    const key = socketKey(ends);
    if (key !== undefined) this.#known.set(ends, key);
    return key;
  }
}

function parseInto(table: string, addressBytes: number, found: Map<string, Queues>): number {
  const keyChars = 2 * (addressBytes * HEX_BYTES + PORT_CHARS) + 1;
  let bytes = 0;
  // The first line is the heading.
  for (let end = table.indexOf('\n'); end >= 0; ) {
    const line = end + 1;
    end = table.indexOf('\n', line);
    const key = table.indexOf(': ', line) + 2;
    const queues = key + keyChars + STATE_CHARS;
    const unsent = Number.parseInt(table.slice(queues, queues + QUEUE_CHARS), HEX);
    const unread = Number.parseInt(table.slice(queues + QUEUE_CHARS + 1, queues + 2 * QUEUE_CHARS + 1), HEX);
    if (!(unsent + unread > 0)) continue;
    bytes += unsent + unread;
    found.set(table.slice(key, key + keyChars), { unsent, unread });
  }
  return bytes;
}

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

/** The queues of every TCP socket that this network namespace has anything of. */
export async function readTcpQueues(): Promise<TcpQueues> {
  const [four, six] = await Promise.all(
    // A system without IPv6, or without proc(5), tells nothing.
    ['/proc/self/net/tcp', '/proc/self/net/tcp6'].map((path) => readFile(path, 'latin1').catch(() => '')),
  );
  const bySocket = new Map<string, Queues>();
  const bytes = parseInto(four!, IPV4_BYTES, bySocket) + parseInto(six!, IPV6_BYTES, bySocket);
  return { bySocket, bytes };
}

/** Memory that all of TCP has now, on the whole machine; undefined where the system does not tell. */
export async function readTcpBytes(): Promise<number | undefined> {
  const text = await readFile('/proc/self/net/sockstat', 'latin1').catch(() => '');
  const pages = /^TCP:.* mem (\d+)$/m.exec(text)?.[1];
  return pages === undefined ? undefined : Number(pages) * PAGE_BYTES;
}

/** Two readings of that, or none where the system does not tell. */
export type TcpBytes = readonly [before: number | undefined, after: number | undefined];

/** What all of TCP had all the while: what came or went between two readings belongs to neither. */
export const leastOf = ([before = 0, after = 0]: TcpBytes): number => Math.min(before, after);

/** Memory may be several times the bytes in it, where those came in small pieces; more than this is somebody else's. */
const MOST_OVERHEAD = 4;

/** Memory for each byte. @param bytes that were in all queues between the two readings */
export const overheadOf = (tcpBytes: TcpBytes, bytes: number): number =>
  Math.min(MOST_OVERHEAD, Math.max(1, leastOf(tcpBytes) / Math.max(1, bytes)));

/** A part of what TCP may have before the kernel saves. @param tcpMem as proc(5) has it, in pages; empty where that is hidden */
export function shareOf(tcpMem: string, memoryBytes: number): number {
  const { tcpParts, memoryParts } = STALL_RULE;
  const pages = Number.parseInt(tcpMem, 10);
  return (pages > 0 ? pages * PAGE_BYTES : memoryBytes / memoryParts) / tcpParts;
}

/** What stalled receivers may hold where nobody set it. */
export const readShareBytes = async (): Promise<number> =>
  shareOf(await readFile('/proc/sys/net/ipv4/tcp_mem', 'latin1').catch(() => ''), totalmem());
