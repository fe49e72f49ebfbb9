import { isIPv6 } from 'node:net';
import type { Route, RouteChange } from '../port.ts';
import { BACKENDS, type HeaderServer, serverLine, TABLES } from './config-text.ts';

/** What may stand in a command without being taken for another one. */
const HOSTNAME = /^[a-z0-9._-]{1,253}$/;
export const isHostname = (text: string) => HOSTNAME.test(text);

/** What HAProxy is to be told, in this order. */
export interface Orders {
  readonly commands: readonly string[];
  /** Servers that no route leads to any more. */
  readonly leaving: readonly string[];
}

const NO_ORDERS: Orders = { commands: [], leaving: [] };
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
    const forget = `clear table ${TABLES.names} key ${hostname}`;
    const old = this.#servers.get(hostname);
    if (ipv6 !== null && proxyHeader) {
      const commands = old ? this.#move(hostname, old, ipv6) : this.#addServer(hostname, ipv6);
      return { commands: [...commands, forget], leaving: [] };
    }
    this.#servers.delete(hostname);
    return { commands: [...this.#point(hostname, ipv6), forget], leaving: old ? [old.server] : [] };
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

  #addServer(hostname: string, ipv6: string): string[] {
    const one = this.#newServer(hostname, ipv6);
    const add = `add server ${BACKENDS.headers}/${serverLine(one, this.#port)}`;
    return [add, `enable server ${nameOf(one.server)}`, ...this.#point(hostname, one.server)];
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

/** What HAProxy complains of in its answer to orders. */
export const findComplaint = (answer: string): string | undefined =>
  answer.split('\n').find((line) => !FINE.test(line.trim()));
