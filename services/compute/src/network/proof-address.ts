import { createHttpServer, type HttpServer, type Logger } from '@skerry/kit';
import { NODE_PROOF_PORT, nodeProofAddress, type Reason } from '@skerry/protocol';
import { run } from '../host/run.ts';
import type { NetworkNames } from './names.ts';
import { findOnLinkInterface, type ShownInterface } from './uplink.ts';

export interface ProofAddressOptions {
  /** The node's /64. */
  readonly prefix: string;
  readonly names: NetworkNames;
  /** What is served at the address. */
  readonly addRoutes: (app: HttpServer, address: string) => void;
  readonly log: Logger;
}

/** Where the address lives: of this machine, whichever interface packets to it come in by. */
const INTERFACE = 'lo';

/**
 * The node's own address inside its /64, where it proves that the /64 leads here (docs/scheduling.md). `keep` makes what is
 * missing, so it can be called again at any time: whatever configures this machine's network may take addresses away.
 */
export class ProofAddress {
  readonly #options: ProofAddressOptions;
  readonly #address: string;
  #app: HttpServer | undefined;
  #onLink: string | undefined;
  /** It is at the interface that a node takes. */
  #isOurs = false;
  /** This node brought it there. */
  #isAdded = false;
  #isClosed = false;

  constructor(options: ProofAddressOptions) {
    this.#options = options;
    this.#address = nodeProofAddress(options.prefix);
  }

  get address(): string {
    return this.#address;
  }

  /** @returns why the address cannot be held, or null where it is */
  async keep(): Promise<Reason | null> {
    if (this.#isClosed) return null;
    try {
      await this.#hold();
      if (!this.#app) await this.#listen();
      return null;
    } catch (error) {
      const message = `cannot hold the address ${this.#address}, which proves the prefix: ${(error as Error).message}`;
      return { code: 'PREFIX_NOT_HELD', message: message.slice(0, 1_024) };
    }
  }

  async #hold(): Promise<void> {
    const { prefix, names } = this.#options;
    const shown = JSON.parse((await run('ip', ['-j', '-6', 'address', 'show'])) || '[]') as ShownInterface[];
    const holder = shown.find(({ addr_info: all = [] }) => all.some(({ local }) => local === this.#address));
    // An operator may have given this machine the address already.
    if (!holder) {
      await run('ip', ['-6', 'address', 'replace', `${this.#address}/128`, 'dev', INTERFACE, 'nodad']);
      this.#isOurs = true;
      this.#isAdded = true;
    } else if (holder.ifname === INTERFACE) this.#isOurs = true;
    // Where the /64 is on a link its neighbours ask who has the address.
    this.#onLink = findOnLinkInterface(shown, prefix, (name) => name.startsWith(names.tapPrefix));
    if (this.#onLink && holder?.ifname !== this.#onLink) await this.#proxy('replace', this.#onLink);
  }

  #proxy(verb: string, device: string): Promise<string> {
    return run('ip', ['-6', 'neigh', verb, 'proxy', this.#address, 'dev', device]);
  }

  async #listen(): Promise<void> {
    const { addRoutes, log } = this.#options;
    const app = await createHttpServer({ log });
    addRoutes(app, this.#address);
    try {
      await app.listen({ host: this.#address, port: NODE_PROOF_PORT });
    } catch (error) {
      await app.close();
      throw error;
    }
    this.#app = app;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#app?.close();
    // Where another one answers there, the address is its own.
    if (!this.#isAdded && !(this.#isOurs && this.#app)) return;
    const { log } = this.#options;
    const undo = async () => {
      if (this.#onLink) await this.#proxy('delete', this.#onLink).catch(() => {});
      await run('ip', ['-6', 'address', 'delete', `${this.#address}/128`, 'dev', INTERFACE]);
    };
    await undo().catch((error) =>
      log.warn({ err: error }, 'the address that proves the prefix was not removed'),
    );
  }
}
