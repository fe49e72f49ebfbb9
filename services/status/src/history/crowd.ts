import { ownerOfUrl } from '@skerry/kit';
import type { Target } from '../registry.ts';
import type { History } from './history.ts';

interface Checked {
  readonly target: Target;
  readonly history: Pick<History, 'totals'>;
}

/** Announced nodes that never answered, by who has the places that they name: whose give way where there is no room for more. */
export class Crowd<One extends Checked> {
  /** The nodes of each owner, the oldest first. */
  readonly #byOwner = new Map<string, One[]>();
  /** Owners by how many they have, so that the one with the most is found at once, however many there are. */
  readonly #bySize: Set<string>[] = [];
  /** No owner has more. */
  #most = 0;

  /** @param services the oldest first */
  constructor(services: Iterable<One>) {
    for (const service of services)
      if (service.target.isForeign && service.history.totals.lastSuccessMs === null) this.add(service);
  }

  add(service: One): void {
    const owner = ownerOfUrl(service.target.url);
    const own = this.#byOwner.get(owner) ?? [];
    this.#byOwner.set(owner, own);
    own.push(service);
    this.#move(owner, own.length - 1, own.length);
  }

  /**
   * Makes room for a node of an owner that has fewer than another one. Whoever has the most loses its oldest, but only where it still has as many
   * as the newcomer's owner then: else two of them would take each other's places without end.
   * @returns whom to forget; undefined where the newcomer has to wait
   */
  giveWay(newcomerUrl: string): One | undefined {
    const count = this.#byOwner.get(ownerOfUrl(newcomerUrl))?.length ?? 0;
    while (this.#most > 0 && this.#bySize[this.#most]!.size === 0) this.#most--;
    if (this.#most < count + 2) return undefined;
    const [owner] = this.#bySize[this.#most]!;
    const own = this.#byOwner.get(owner!)!;
    const oldest = own.shift();
    this.#move(owner!, own.length + 1, own.length);
    return oldest;
  }

  #move(owner: string, from: number, to: number): void {
    this.#bySize[from]?.delete(owner);
    this.#bySize[to] ??= new Set();
    this.#bySize[to].add(owner);
    this.#most = Math.max(this.#most, to);
  }
}
