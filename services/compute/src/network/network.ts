import { readdir, readFile, writeFile } from 'node:fs/promises';
import { pause } from '@skerry/kit';
import { run } from '../host/run.ts';
import { GATEWAY } from '../vm/seed.ts';
import type { NetworkNames } from './names.ts';
import { dropRuleset, type GuestLink, nodeRuleset } from './ruleset.ts';

const SETTINGS = '/proc/sys/net/ipv6/conf';
/** The lowest priority there is: any other route to the prefix wins. */
const UNREACHABLE_METRIC = '2147483647';
const NEIGHBOUR_DEADLINE_MS = 5_000;
const NEIGHBOUR_POLL_MS = 100;

/**
 * The node's part of the kernel's network, in the network namespace this process runs in: one tap for each guest, a
 * route to it, and one nftables table. All of it is named after the node; nothing else is touched. What the kernel has
 * is compared with what should be there, so a crash between two commands is mended by the next call.
 */
export class NodeNetwork {
  readonly #names: NetworkNames;
  readonly #prefix: string;
  readonly #guests = new Map<string, GuestLink>();
  #turn: Promise<unknown> = Promise.resolve();

  /** @param prefix the node's /64 */
  constructor(names: NetworkNames, prefix: string) {
    this.#names = names;
    this.#prefix = prefix;
  }

  /** Puts up everything for these guests, and takes away what earlier lives of this node left for others. */
  async start(guests: readonly GuestLink[]): Promise<void> {
    await this.#inTurn(async () => {
      await enableForwarding();
      await this.#unreachable('replace');
      for (const guest of guests) this.#guests.set(guest.tap, guest);
      await this.#applyRules();
      const taps = await this.#listTaps();
      for (const tap of taps) if (!this.#guests.has(tap)) await run('ip', ['link', 'delete', tap]);
      for (const guest of guests) await this.#ensureTap(guest, taps);
    });
  }

  /** Makes a guest's tap and rules; the rules come first, so that no packet passes without them. */
  async add(guest: GuestLink): Promise<void> {
    await this.#inTurn(async () => {
      this.#guests.set(guest.tap, guest);
      await this.#applyRules();
      await this.#ensureTap(guest, await this.#listTaps());
    });
  }

  /** Takes a guest's tap, its route and its rules away. Its QEMU must be gone. */
  async remove(tap: string): Promise<void> {
    await this.#inTurn(async () => {
      this.#guests.delete(tap);
      if ((await this.#listTaps()).includes(tap)) await run('ip', ['link', 'delete', tap]);
      await this.#applyRules();
    });
  }

  /** Takes away all that this node ever made. */
  async clear(): Promise<void> {
    await this.#inTurn(async () => {
      this.#guests.clear();
      for (const tap of await this.#listTaps()) await run('ip', ['link', 'delete', tap]);
      // Put before it is taken: `delete` alone would fail where there is none.
      for (const verb of ['replace', 'delete']) await this.#unreachable(verb);
      await run('nft', ['-f', '-'], { input: dropRuleset(this.#names) });
    });
  }

  /** Whether somebody answers at an address behind a tap: the kernel is made to ask for it, as it would before sending. */
  async answers(tap: string, address: string, mac: string): Promise<boolean> {
    await run('ip', ['-6', 'neigh', 'replace', address, 'lladdr', mac, 'dev', tap, 'nud', 'probe']);
    const deadline = Date.now() + NEIGHBOUR_DEADLINE_MS;
    for (;;) {
      const shown = JSON.parse(
        (await run('ip', ['-j', '-6', 'neigh', 'show', 'to', address, 'dev', tap])) || '[]',
      ) as { state?: string[] }[];
      const states = shown.flatMap((one) => one.state ?? []);
      if (states.includes('REACHABLE')) return true;
      if (!states.includes('PROBE') || Date.now() > deadline) return false;
      await pause(NEIGHBOUR_POLL_MS, new AbortController().signal);
    }
  }

  async #ensureTap({ tap, network }: GuestLink, taps: readonly string[]): Promise<void> {
    if (!taps.includes(tap)) await run('ip', ['tuntap', 'add', 'dev', tap, 'mode', 'tap']);
    // The guest is no router: nothing that it announces is believed.
    for (const setting of ['accept_ra', 'accept_redirects'])
      await writeFile(`${SETTINGS}/${tap}/${setting}`, '0');
    const commands = [
      `address replace ${GATEWAY}/64 dev ${tap} nodad`,
      `link set dev ${tap} up`,
      `route replace ${network} dev ${tap}`,
    ];
    await run('ip', ['-6', '-batch', '-'], { input: `${commands.join('\n')}\n` });
  }

  /** The route that ends packets to addresses of the node's /64 that no instance has, instead of sending them back out. */
  async #unreachable(verb: string): Promise<void> {
    await run('ip', ['-6', 'route', verb, 'unreachable', this.#prefix, 'metric', UNREACHABLE_METRIC]);
  }

  async #listTaps(): Promise<string[]> {
    const links = JSON.parse((await run('ip', ['-j', 'link', 'show'])) || '[]') as { ifname: string }[];
    return links.map((link) => link.ifname).filter((name) => name.startsWith(this.#names.tapPrefix));
  }

  async #applyRules(): Promise<void> {
    await run('nft', ['-f', '-'], { input: nodeRuleset(this.#names, [...this.#guests.values()]) });
  }

  /** One change at a time: each replaces the whole table. */
  #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(body);
    this.#turn = result.catch(() => {});
    return result;
  }
}

/**
 * Lets this machine pass packets between interfaces. The kernel stops listening to routers when it becomes one, which
 * would take this machine's own way out from it: interfaces that listened are told to go on (accept_ra 2).
 */
async function enableForwarding(): Promise<void> {
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
