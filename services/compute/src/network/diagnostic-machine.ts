import type { Logger } from '@skerry/kit';
import { DIAGNOSTIC_VM, programAddress, type Reason } from '@skerry/protocol';
import type { AddressBook } from './address-book.ts';
import { ipv4LinkOf, LINKS_PER_POOL } from './ipv4.ts';
import { type NetworkNames, tapName } from './names.ts';
import type { NodeNetwork } from './network.ts';
import type { GuestLink } from './ruleset.ts';

/** The last one: instances get the lowest that is free. */
const LINK = LINKS_PER_POOL - 1;

/** Where monitors ping. What is pinged has an address of its own, or the reason why there is none. */
export interface DiagnosticState {
  readonly ipv6: string | null;
  readonly reason: string | null;
}

/**
 * What stands for the diagnostic program's machine: programs have no network, so a network namespace of this machine has
 * the address. Packets to it take the way of every guest's, and nothing but the kernel answers there. Pure.
 */
function diagnosticLink(names: NetworkNames, ipv6Prefix: string, ipv4Pool: string): GuestLink {
  const guest = programAddress(ipv6Prefix.replace(/\/.*$/, ''), DIAGNOSTIC_VM);
  return {
    tap: tapName(names, DIAGNOSTIC_VM),
    network: `${guest.slice(0, -1)}0/124`,
    guest,
    allowedPorts: [],
    ipv4: ipv4LinkOf(ipv4Pool, LINK),
    hostPorts: {},
    isNamespace: true,
  };
}

export interface DiagnosticMachineOptions {
  readonly names: NetworkNames;
  readonly ipv6Prefix: string;
  readonly ipv4Pool: string;
  readonly network: Pick<NodeNetwork, 'add'>;
  readonly addresses: Pick<AddressBook, 'restore'>;
  /** Why this node has no network for guests; null where it has. */
  readonly obstacle: Reason | null;
  /** Whether the node runs programs: without the diagnostic one nobody pings its machine. */
  readonly runsPrograms: boolean;
  readonly log: Logger;
}

/** Its address is put up once the node's network is started. */
export class DiagnosticMachine {
  readonly #options: DiagnosticMachineOptions;
  #state: DiagnosticState = { ipv6: null, reason: 'the node is starting' };

  constructor(options: DiagnosticMachineOptions) {
    this.#options = options;
  }

  get state(): DiagnosticState {
    return this.#state;
  }

  /** Puts it up, or says why the node cannot be pinged. */
  async start(): Promise<DiagnosticState> {
    this.#state = await this.#putUp();
    return this.#state;
  }

  async #putUp(): Promise<DiagnosticState> {
    const { names, ipv6Prefix, ipv4Pool, network, addresses, obstacle, runsPrograms, log } = this.#options;
    if (obstacle) return { ipv6: null, reason: `this node creates no networks: ${obstacle.message}` };
    if (!runsPrograms) return { ipv6: null, reason: 'this node runs no programs' };
    const link = diagnosticLink(names, ipv6Prefix, ipv4Pool);
    addresses.restore(DIAGNOSTIC_VM, { link: LINK, hostPorts: {} });
    try {
      await network.add(link);
      return { ipv6: link.guest, reason: null };
    } catch (error) {
      const reason = `its network namespace cannot be created: ${(error as Error).message}`;
      log.warn({ err: error }, "monitors cannot ping this node's diagnostic machine");
      return { ipv6: null, reason };
    }
  }
}
