import { lookup } from 'node:dns/promises';
import { spellAddress } from '../net/client-address.ts';

/** A name may be unknown while its host starts, and a host may move. */
const LOOK_MS = 60_000;

type Resolve = (name: string) => Promise<readonly { readonly address: string }[]>;

/**
 * Whether a client is one of the network's own hosts, which are known by their names. They are looked up beside whoever asks, again once
 * a minute where somebody asks; of one that is not found the addresses stay that it had.
 */
export class OwnHosts {
  readonly #names: readonly string[];
  readonly #resolve: Resolve;
  readonly #now: () => number;
  readonly #found = new Map<string, readonly string[]>();
  #looking: Promise<void> | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a clock that never goes back */
  constructor(
    urls: readonly string[],
    resolve: Resolve = (name) => lookup(name, { all: true }),
    now = () => performance.now(),
  ) {
    this.#names = urls.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, ''));
    this.#resolve = resolve;
    this.#now = now;
    void this.look();
  }

  /** @param address in one spelling (spellAddress) */
  has(address: string): boolean {
    if (this.#now() - this.#lookedMs >= LOOK_MS) void this.look();
    return [...this.#found.values()].some((addresses) => addresses.includes(address));
  }

  /** Resolves when all are looked up; whoever asks meanwhile waits for the same. */
  look(): Promise<void> {
    this.#lookedMs = this.#now();
    this.#looking ??= this.#lookUp().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** One after another: a name that no server answers for occupies one of a few threads for long. */
  async #lookUp(): Promise<void> {
    for (const name of this.#names) {
      const found = await this.#resolve(name).catch(() => undefined);
      if (found)
        this.#found.set(
          name,
          found.map(({ address }) => spellAddress(address)),
        );
    }
  }
}
