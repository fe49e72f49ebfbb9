import { readFile } from 'node:fs/promises';
import { AppError } from '@skerry/protocol';
import { run } from '../host/run.ts';
import {
  chooseHostPort,
  type HostPorts,
  listForwarded,
  type OpenPorts,
  type PortRange,
  parseForwardedElsewhere,
  parseListening,
} from './host-ports.ts';
import { LINKS_PER_POOL } from './ipv4.ts';
import { FORWARD_MAPS } from './ruleset.ts';

/** What of the node's IPv4 an instance has: the number of its link and the ports. Kept in the instance's record. */
export interface Ipv4Claim {
  readonly link: number;
  readonly hostPorts: HostPorts;
}

export interface AddressBookOptions {
  /** The node's own nftables table. */
  readonly table: string;
  readonly ports: PortRange;
}

/** Who has which link and which ports, so that no two instances get the same. */
export class AddressBook {
  readonly #options: AddressBookOptions;
  readonly #claims = new Map<string, Ipv4Claim>();
  /** Links of instances that left and may come back, by their ids; of the one first that left first. */
  readonly #kept = new Map<string, number>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: AddressBookOptions) {
    this.#options = options;
  }

  /** What an instance had when the last process ended. */
  restore(instanceId: string, claim: Ipv4Claim): void {
    this.#claims.set(instanceId, claim);
  }

  free(instanceId: string): void {
    this.#claims.delete(instanceId);
  }

  /** The instance left, and finds its disk if it comes back: its guest was set up with the address of the link. Its ports are free. */
  leave(instanceId: string): void {
    const link = this.#claims.get(instanceId)?.link;
    this.#claims.delete(instanceId);
    if (link !== undefined) this.keep(instanceId, link);
  }

  /** Keeps the link of an instance that left before this process began, unless another one has it. Those first that left first. */
  keep(instanceId: string, link: number): void {
    if (!this.#claims.has(instanceId) && !this.#takenLinks().has(link)) this.#kept.set(instanceId, link);
  }

  /** The instance's link and ports; those it has already, or had when it left, stay as they are. Throws NO_CAPACITY. */
  claim(instanceId: string, open: OpenPorts): Promise<Ipv4Claim> {
    const result = this.#turn.then(() => this.#claim(instanceId, open));
    this.#turn = result.catch(() => {});
    return result;
  }

  async #claim(instanceId: string, open: OpenPorts): Promise<Ipv4Claim> {
    const old = this.#claims.get(instanceId);
    const wanted = listForwarded(open);
    const isNews = wanted.some((port) => old?.hostPorts[port] === undefined);
    const taken = new Set(isNews ? await this.#listTaken() : []);
    const hostPorts: Record<number, number> = {};
    for (const port of wanted) {
      const chosen =
        old?.hostPorts[port] ??
        chooseHostPort(instanceId, port, this.#options.ports, (one) => taken.has(one));
      hostPorts[port] = chosen;
      taken.add(chosen);
    }
    const claim = { link: old?.link ?? this.#kept.get(instanceId) ?? this.#freeLink(), hostPorts };
    this.#kept.delete(instanceId);
    this.#claims.set(instanceId, claim);
    return claim;
  }

  #takenLinks(): Set<number> {
    return new Set([...Array.from(this.#claims.values(), (claim) => claim.link), ...this.#kept.values()]);
  }

  #freeLink(): number {
    const taken = this.#takenLinks();
    for (let link = 0; link < LINKS_PER_POOL; link++) if (!taken.has(link)) return link;
    // One that may come back gives way to one that is here.
    const [first] = this.#kept;
    if (first) {
      const [instanceId, link] = first;
      this.#kept.delete(instanceId);
      return link;
    }
    throw new AppError(
      'NO_CAPACITY',
      `this node has ${LINKS_PER_POOL} instances and no IPv4 link for another`,
    );
  }

  /** A port that a program of this machine listens on would be taken away from it; one of another node, from its guest. */
  async #listTaken(): Promise<number[]> {
    const own = [...this.#claims.values()].flatMap((claim) => Object.values(claim.hostPorts));
    const listening = (['tcp', 'udp'] as const).flatMap((protocol) =>
      [protocol, `${protocol}6`].map(async (name) =>
        parseListening(await readFile(`/proc/net/${name}`, 'utf8').catch(() => ''), protocol),
      ),
    );
    const elsewhere = await run('nft', ['-j', 'list', 'maps']);
    return [
      ...own,
      ...(await Promise.all(listening)).flat(),
      ...parseForwardedElsewhere(elsewhere, this.#options.table, Object.values(FORWARD_MAPS)),
    ];
  }
}
