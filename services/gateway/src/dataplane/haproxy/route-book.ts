import { isIPv6 } from 'node:net';
import type { Route, RouteChange } from '../port.ts';
import { BACKENDS, type HeaderServer, serverLine, TABLES } from './config-text.ts';

/** What may stand in a command without being taken for another one. */
const HOSTNAME = /^[a-z0-9._-]{1,253}$/;
export const isHostname = (text: string) => HOSTNAME.test(text);

/** What HAProxy is to be told, in this order. */
export interface Orders {
  /** Of a server that the route is about to lead to. */
  readonly before: readonly string[];
  /** Of the map; a map that replaces the old one whole has it already. */
  readonly map: readonly string[];
  readonly behind: readonly string[];
  /** Servers that no route leads to any more. */
  readonly leaving: readonly string[];
}

/** Of one command, which with its lines has to fit into 16 KiB. */
const MAX_PAYLOAD_CHARS = 12_000;

const NO_ORDERS: Orders = { before: [], map: [], behind: [], leaving: [] };
const nameOf = (server: string) => `${BACKENDS.headers}/${server}`;

/**
 * What HAProxy has been told of routes, to tell it changes. A route is an address, or, with the PROXY header, a server of its
 * own in the backend for those: an address that is set for a connection would stand in its header.
 */
export class RouteBook {
  readonly #file: string;
  readonly #port: number;
  readonly #values = new Map<string, string>();
  readonly #servers = new Map<string, HeaderServer>();
  #lastServer = 0;

  /** @param file path of the map; @param port of instances */
  constructor(file: string, port: number) {
    this.#file = file;
    this.#port = port;
  }

  /** What the map's file and the configuration have when HAProxy starts. */
  begin(routes: Iterable<Route>): { readonly map: string; readonly servers: HeaderServer[] } {
    const lines: string[] = [];
    for (const { hostname, ipv6, proxyHeader } of routes) {
      if (!isWritable({ hostname, ipv6 })) continue;
      const value = proxyHeader ? this.#newServer(hostname, ipv6).server : ipv6;
      this.#values.set(hostname, value);
      lines.push(`${hostname} ${value}\n`);
    }
    return { map: lines.join(''), servers: [...this.#servers.values()] };
  }

  #newServer(hostname: string, ipv6: string): HeaderServer {
    // A name is used once: what still knows the old one must not reach another instance.
    const one = { server: `s${++this.#lastServer}`, ipv6 };
    this.#servers.set(hostname, one);
    return one;
  }

  /** The names that lead somewhere. */
  names(): Iterable<string> {
    return this.#values.keys();
  }

  has({ hostname, ipv6, proxyHeader = false }: Route): boolean {
    const server = this.#servers.get(hostname);
    if (proxyHeader) return server?.ipv6 === ipv6;
    return server === undefined && this.#values.get(hostname) === ipv6;
  }

  change({ hostname, ipv6, proxyHeader = false }: RouteChange): Orders {
    if (!isWritable({ hostname, ipv6 })) return NO_ORDERS;
    const behind = [`clear table ${TABLES.names} key ${hostname}`];
    const old = this.#servers.get(hostname);
    if (ipv6 !== null && proxyHeader) {
      if (old) return { before: this.#move(hostname, old, ipv6), map: [], behind, leaving: [] };
      return { ...this.#addServer(hostname, ipv6), behind, leaving: [] };
    }
    this.#servers.delete(hostname);
    return { before: [], map: this.#point(hostname, ipv6), behind, leaving: old ? [old.server] : [] };
  }

  /** Whether HAProxy looks through its map for the name, all names in turn, to change where it leads. */
  isSlow({ hostname }: RouteChange): boolean {
    return this.#values.has(hostname);
  }

  get prepareMap(): string {
    return `prepare map ${this.#file}`;
  }

  /** Commands that make the whole map, as it is in this book, anew; until the last of them the old one counts. */
  *replaceMap(version: string): Generator<string> {
    const add = (lines: readonly string[]) =>
      `add map @${version} ${this.#file} <<\n${lines.map((line) => `${line}\n`).join('')}`;
    let lines: string[] = [];
    let chars = 0;
    for (const [hostname, value] of this.#values) {
      const line = `${hostname} ${value}`;
      if (chars + line.length > MAX_PAYLOAD_CHARS) {
        yield add(lines);
        [lines, chars] = [[], 0];
      }
      lines.push(line);
      chars += line.length + 1;
    }
    if (lines.length > 0) yield add(lines);
    yield `commit map @${version} ${this.#file}`;
  }

  #point(hostname: string, value: string | null): string[] {
    const isKnown = this.#values.has(hostname);
    if (value === null) {
      this.#values.delete(hostname);
      return isKnown ? [`del map ${this.#file} ${hostname}`] : [];
    }
    this.#values.set(hostname, value);
    return [`${isKnown ? 'set' : 'add'} map ${this.#file} ${hostname} ${value}`];
  }

  #move(hostname: string, { server, ipv6: before }: HeaderServer, ipv6: string): string[] {
    if (before === ipv6) return [];
    this.#servers.set(hostname, { server, ipv6 });
    return [`set server ${nameOf(server)} addr ${ipv6}`];
  }

  #addServer(hostname: string, ipv6: string) {
    const one = this.#newServer(hostname, ipv6);
    const add = `add server ${BACKENDS.headers}/${serverLine(one, this.#port)}`;
    const before = [add, `enable server ${nameOf(one.server)}`];
    return { before, map: this.#point(hostname, one.server) };
  }
}

/** A server goes when its last connection has ended; until then it takes none. */
export const takeAway = (server: string) =>
  `set server ${nameOf(server)} state maint;del server ${nameOf(server)}`;

/** Of what HAProxy answers to `takeAway`. */
export const isGone = (answer: string) => /Server deleted|No such server/.test(answer);

function isWritable({ hostname, ipv6 }: { hostname: string; ipv6: string | null }): boolean {
  return isHostname(hostname) && (ipv6 === null || isIPv6(ipv6));
}

/** What HAProxy says where it did as it was told. */
const FINE =
  /^(New server registered\.|IP changed from .*|no need to change the addr.*|Entry currently in use, cannot remove)?$/;

/** Of what HAProxy answers to `prepareMap`; undefined where it made none. */
export const findVersion = (answer: string): string | undefined =>
  /^New version created: (\d+)$/m.exec(answer)?.[1];

/** What HAProxy complains of in its answer to orders. */
export const findComplaint = (answer: string): string | undefined =>
  answer.split('\n').find((line) => !FINE.test(line.trim()));
