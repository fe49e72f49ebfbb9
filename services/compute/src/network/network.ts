import { readdir, readFile, writeFile } from 'node:fs/promises';
import { pause } from '@skerry/kit';
import { run } from '../host/run.ts';
import { GATEWAY } from '../vm/seed.ts';
import { LINK_LENGTH } from './ipv4.ts';
import type { NetworkNames } from './names.ts';
import { dropRuleset, type GuestLink, nodeRuleset, type RuleSettings, TAP_GROUP } from './ruleset.ts';
import { dropShares, type GuestShare, sharesRuleset, sharesTableOf } from './shares.ts';
import { findOnLinkInterface, isInPrefix, type ShownInterface } from './uplink.ts';

const DEVICES = '/proc/self/net/dev';
const SETTINGS = '/proc/sys/net/ipv6/conf';
const IPV4_SETTINGS = '/proc/sys/net/ipv4/conf';
const IPV4_FORWARDING = '/proc/sys/net/ipv4/ip_forward';
/** The lowest priority there is: any other route to the prefix wins. */
const UNREACHABLE_METRIC = '2147483647';
/** The other end of a cable, and the length of a guest's network. */
const INSIDE = 'eth0';
const NETWORK_LENGTH = 124;
const NEIGHBOUR_DEADLINE_MS = 5_000;
const NEIGHBOUR_POLL_MS = 100;

export interface NodeNetworkOptions extends RuleSettings, GuestShare {
  readonly names: NetworkNames;
  /** The node's /64. */
  readonly prefix: string;
}

/**
 * The node's part of the kernel's network, in the network namespace this process runs in: one tap for each guest, routes
 * to it, and two nftables tables. All of it is named after the node; nothing else is touched. What the kernel has
 * is compared with what should be there, so a crash between two commands is mended by the next call.
 */
export class NodeNetwork {
  readonly #options: NodeNetworkOptions;
  readonly #guests = new Map<string, GuestLink>();
  /** Where the node answers for its guests; undefined where it need not. */
  #onLink: string | undefined;
  #isUp = false;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: NodeNetworkOptions) {
    this.#options = options;
  }

  /** Whether neighbours on the link are told where the guests are (proxy_ndp). */
  get isAnsweringNeighbours(): boolean {
    return this.#onLink !== undefined;
  }

  /**
   * Puts up everything for these guests, and takes away what earlier lives of this node left for others.
   *
   * @param held taps of machines that run, though what they may do cannot be read: they would never get them back. They have no rules
   */
  async start(guests: readonly GuestLink[], held: readonly string[] = []): Promise<void> {
    await this.#inTurn(async () => {
      await enableForwarding();
      await this.#unreachable('replace');
      for (const guest of guests) this.#guests.set(guest.tap, guest);
      this.#isUp = true;
      await this.#applyRules();
      await this.#applyShares();
      const taps = await this.#listTaps();
      const isOver = (tap: string) => !this.#guests.has(tap) && !held.includes(tap);
      for (const tap of taps.filter(isOver)) await run('ip', ['link', 'delete', tap]);
      await this.#dropNamespaces((name) => !this.#guests.has(name));
      await this.#startProxy();
      for (const guest of guests) {
        await this.#ensureTap(guest, taps);
        await this.#putUp(guest);
      }
    });
  }

  /** Makes a guest's tap and rules; the tap is put up when the rules are there, so that no packet passes without them. */
  async add(guest: GuestLink): Promise<void> {
    await this.#inTurn(async () => {
      this.#guests.set(guest.tap, guest);
      const taps = await this.#listTaps();
      await Promise.all([this.#applyRules(), this.#ensureTap(guest, taps)]);
      await this.#putUp(guest);
    });
  }

  /** Takes a guest's tap, its route and its rules away. Its QEMU must be gone. */
  async remove(tap: string): Promise<void> {
    await this.#inTurn(async () => {
      const guest = this.#guests.get(tap);
      this.#guests.delete(tap);
      if (guest) await this.#dropProxy(guest.guest);
      if ((await this.#listTaps()).includes(tap)) await run('ip', ['link', 'delete', tap]);
      if (guest?.isNamespace) await this.#dropNamespaces((name) => name === tap);
      await this.#applyRules();
    });
  }

  /**
   * Puts the rules up again that something else took away, such as another firewall that begins with none: without them guests would
   * reach what is closed to them, and nobody would reach guests.
   * @returns whether any were missing
   */
  keepRules(): Promise<boolean> {
    return this.#inTurn(async () => {
      if (!this.#isUp) return false;
      const there = parseTables(await run('nft', ['-j', 'list', 'tables']));
      const { names } = this.#options;
      if ([names.table, sharesTableOf(names)].every((table) => there.includes(table))) return false;
      await this.#applyRules();
      await this.#applyShares();
      return true;
    });
  }

  /**
   * Has the kernel answer for guests again where it forgot them, as it does when the link goes down, and on the link where the /64 is
   * now: without that no neighbour, nor the router, reaches a guest.
   * @returns whether it answered for too few
   */
  keepNeighbours(): Promise<boolean> {
    return this.#inTurn(async () => {
      if (!this.#isUp) return false;
      await this.#findLink();
      const onLink = this.#onLink;
      if (!onLink) return false;
      const answered = await this.#listProxies();
      const isAnswered = (guest: string) => answered.some(({ dst, dev }) => dst === guest && dev === onLink);
      const missing = [...this.#guests.values()].filter(({ guest }) => !isAnswered(guest));
      if (missing.length === 0) return false;
      const commands = missing.map(({ guest }) => `neigh replace proxy ${guest} dev ${onLink}`);
      await run('ip', ['-6', '-batch', '-'], { input: `${commands.join('\n')}\n` });
      return true;
    });
  }

  /** The node's IPv4 address at a tap; undefined where it has none. */
  async findGateway(tap: string): Promise<string | undefined> {
    if (!(await this.#listTaps()).includes(tap)) return undefined;
    const shown = JSON.parse(
      (await run('ip', ['-j', 'address', 'show', 'dev', tap])) || '[]',
    ) as ShownInterface[];
    const addresses = shown.flatMap(({ addr_info: all = [] }) => all);
    return addresses.find(({ family }) => family === 'inet')?.local;
  }

  /** Takes away all that this node ever made. */
  async clear(): Promise<void> {
    await this.#inTurn(async () => {
      this.#isUp = false;
      for (const { guest } of this.#guests.values()) await this.#dropProxy(guest);
      this.#guests.clear();
      for (const tap of await this.#listTaps()) await run('ip', ['link', 'delete', tap]);
      await this.#dropNamespaces(() => true);
      // Put before it is taken: `delete` alone would fail where there is none.
      for (const verb of ['replace', 'delete']) await this.#unreachable(verb);
      await run('nft', ['-f', '-'], {
        input: dropRuleset(this.#options.names) + dropShares(this.#options.names),
      });
    });
  }

  /** Whether somebody answers at an address behind a tap: the kernel is made to ask for it, as it would before sending. */
  async answers(tap: string, address: string, mac: string): Promise<boolean> {
    await run('ip', ['-6', 'neigh', 'replace', address, 'lladdr', mac, 'dev', tap, 'nud', 'probe']);
    const deadline = performance.now() + NEIGHBOUR_DEADLINE_MS;
    for (;;) {
      const shown = JSON.parse(
        (await run('ip', ['-j', '-6', 'neigh', 'show', 'to', address, 'dev', tap])) || '[]',
      ) as { state?: string[] }[];
      const states = shown.flatMap((one) => one.state ?? []);
      if (states.includes('REACHABLE')) return true;
      if (!states.includes('PROBE') || performance.now() > deadline) return false;
      await pause(NEIGHBOUR_POLL_MS, new AbortController().signal);
    }
  }

  async #ensureTap(link: GuestLink, taps: readonly string[]): Promise<void> {
    const { tap } = link;
    if (link.isNamespace) await this.#ensureNamespace(link, taps.includes(tap));
    else if (!taps.includes(tap)) await run('ip', ['tuntap', 'add', 'dev', tap, 'mode', 'tap']);
    // The guest is no router: nothing that it announces is believed.
    for (const setting of ['accept_ra', 'accept_redirects'])
      await writeFile(`${SETTINGS}/${tap}/${setting}`, '0');
    // Nor is it anybody else: who asks under an address that does not lead there is not answered, nor remembered.
    await writeFile(`${IPV4_SETTINGS}/${tap}/arp_filter`, '1');
  }

  /** A cable in place of the tap, and a namespace with the guest's address at its other end. */
  async #ensureNamespace({ tap, guest }: GuestLink, hasCable: boolean): Promise<void> {
    const enter = () => run('ip', ['-netns', tap, 'link', 'show', 'lo']).catch(() => undefined);
    if ((await enter()) === undefined) {
      // A name can outlive its namespace.
      await this.#dropNamespaces((name) => name === tap);
      await run('ip', ['netns', 'add', tap]);
    }
    const [own, inside] = [`name ${tap}`, `name ${INSIDE} netns ${tap}`];
    if (!hasCable) await run('ip', `link add ${own} type veth peer ${inside}`.split(' '));
    const commands = [
      'link set dev lo up',
      `link set dev ${INSIDE} up`,
      `address replace ${guest}/${NETWORK_LENGTH} dev ${INSIDE} nodad`,
      `route replace default via ${GATEWAY} dev ${INSIDE}`,
    ];
    await run('ip', ['-6', '-netns', tap, '-batch', '-'], { input: `${commands.join('\n')}\n` });
  }

  async #listNamespaces(): Promise<string[]> {
    const shown = JSON.parse((await run('ip', ['-j', 'netns', 'list'])) || '[]') as { name: string }[];
    return shown.map(({ name }) => name).filter((name) => name.startsWith(this.#options.names.tapPrefix));
  }

  async #dropNamespaces(isOver: (name: string) => boolean): Promise<void> {
    for (const name of await this.#listNamespaces())
      if (isOver(name)) await run('ip', ['netns', 'delete', name]);
  }

  async #putUp({ tap, network, guest, ipv4 }: GuestLink): Promise<void> {
    const commands = [
      `address replace ${GATEWAY}/64 dev ${tap} nodad`,
      `address replace ${ipv4.gateway}/${LINK_LENGTH} dev ${tap}`,
      `link set dev ${tap} group ${TAP_GROUP} up`,
      `route replace ${network} dev ${tap}`,
    ];
    if (this.#onLink) commands.push(`neigh replace proxy ${guest} dev ${this.#onLink}`);
    await run('ip', ['-batch', '-'], { input: `${commands.join('\n')}\n` });
  }

  /** Where the /64 is on a link, its neighbours ask for each address: the kernel is told which ones to answer for. */
  async #startProxy(): Promise<void> {
    await this.#findLink();
    if (!this.#onLink) return;
    const { prefix } = this.#options;
    const wanted = new Set([...this.#guests.values()].map(({ guest }) => guest));
    // Those of instances that went while this process was away; addresses of others are not of this node's /64.
    for (const { dst } of await this.#listProxies())
      if (isInPrefix(dst, prefix) && !wanted.has(dst)) await this.#dropProxy(dst);
  }

  async #findLink(): Promise<void> {
    const { prefix, names } = this.#options;
    const shown = JSON.parse((await run('ip', ['-j', 'address', 'show'])) || '[]') as ShownInterface[];
    this.#onLink = findOnLinkInterface(shown, prefix, (name) => name.startsWith(names.tapPrefix));
    if (this.#onLink) await writeFile(`${SETTINGS}/${this.#onLink}/proxy_ndp`, '1');
  }

  async #listProxies(): Promise<{ readonly dst: string; readonly dev: string }[]> {
    return JSON.parse((await run('ip', ['-j', '-6', 'neigh', 'show', 'proxy'])) || '[]');
  }

  async #dropProxy(address: string): Promise<void> {
    if (!this.#onLink) return;
    // Put before it is taken: `delete` alone would fail where there is none.
    for (const verb of ['replace', 'delete'])
      await run('ip', ['-6', 'neigh', verb, 'proxy', address, 'dev', this.#onLink]);
  }

  /** The routes that end packets to addresses of the node that no instance has, instead of sending them back out. */
  async #unreachable(verb: string): Promise<void> {
    const { prefix, ipv4Pool } = this.#options;
    for (const network of [prefix, ipv4Pool]) {
      const family = network === prefix ? '-6' : '-4';
      await run('ip', [family, 'route', verb, 'unreachable', network, 'metric', UNREACHABLE_METRIC]);
    }
  }

  async #listTaps(): Promise<string[]> {
    // The interfaces of the network namespace that this process is in (proc_pid_net(5)).
    const lines = (await readFile(DEVICES, 'utf8')).split('\n');
    const names = lines.map((line) => line.slice(0, Math.max(0, line.indexOf(':'))).trim());
    return names.filter((name) => name.startsWith(this.#options.names.tapPrefix));
  }

  async #applyRules(): Promise<void> {
    const input = nodeRuleset(this.#options.names, [...this.#guests.values()], this.#options);
    await run('nft', ['-f', '-'], { input });
  }

  async #applyShares(): Promise<void> {
    await run('nft', ['-f', '-'], { input: sharesRuleset(this.#options.names, this.#options) });
  }

  /** One change at a time: each replaces the whole table. */
  #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(body);
    this.#turn = result.catch(() => {});
    return result;
  }
}

/** Names of the tables of the family `inet`, from `nft -j list tables`. */
function parseTables(json: string): string[] {
  const { nftables = [] } = JSON.parse(json || '{}') as {
    nftables?: { table?: { family: string; name: string } }[];
  };
  return nftables.flatMap(({ table }) => (table?.family === 'inet' ? [table.name] : []));
}

/**
 * Lets this machine pass packets between interfaces. The kernel stops listening to routers when it becomes one, which
 * would take this machine's own way out from it: interfaces that listened are told to go on (accept_ra 2).
 */
async function enableForwarding(): Promise<void> {
  if ((await readFile(IPV4_FORWARDING, 'utf8')).trim() !== '1') await writeFile(IPV4_FORWARDING, '1');
  if ((await readSetting('all/forwarding')) === '1') return;
  for (const name of await readdir(SETTINGS)) {
    if (name === 'all' || name === 'lo') continue;
    if ((await readSetting(`${name}/accept_ra`)) === '1')
      await writeFile(`${SETTINGS}/${name}/accept_ra`, '2');
  }
  await writeFile(`${SETTINGS}/all/forwarding`, '1');
}

async function readSetting(name: string): Promise<string> {
  return (await readFile(`${SETTINGS}/${name}`, 'utf8')).trim();
}
