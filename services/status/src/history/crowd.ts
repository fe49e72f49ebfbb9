import { ownerOfUrl } from '@skerry/kit';
import type { Target } from '../registry.ts';
import type { History } from './history.ts';

interface Checked {
  readonly target: Target;
  readonly history: Pick<History, 'totals' | 'last'>;
}

/** Of the places for announced nodes, so many are not taken from those that do not answer: a newcomer has not answered yet. */
const SILENT_PART = 0.25;
/** For how long a node that fell silent still has its place as one that answers. */
const REMEMBERED_MS = 86_400_000;

/** Whether it answered in the day before it was checked last: time in which nobody checked makes no node silent. */
function answers({ history: { totals, last } }: Checked): boolean {
  const { lastSuccessMs } = totals;
  return lastSuccessMs !== null && last !== null && last.atMs - lastSuccessMs < REMEMBERED_MS;
}

/** Nodes by who has the places that they name. */
class Owners<One extends Checked> {
  /** The nodes of each owner, the oldest first. */
  readonly #byOwner = new Map<string, One[]>();
  /** Owners by how many they have, so that the one with the most is found at once, however many there are. */
  readonly #bySize: Set<string>[] = [];
  /** No owner has more. */
  #most = 0;
  size = 0;

  countOf(owner: string): number {
    return this.#byOwner.get(owner)?.length ?? 0;
  }

  add(service: One): void {
    const owner = ownerOfUrl(service.target.url);
    const own = this.#byOwner.get(owner) ?? [];
    this.#byOwner.set(owner, own);
    own.push(service);
    this.size++;
    this.#move(owner, own.length - 1, own.length);
  }

  /** Takes one from whoever has the most; undefined where that is fewer than `least`. */
  takeFromMost(least: number, which: 'oldest' | 'newest'): One | undefined {
    while (this.#most > 0 && this.#bySize[this.#most]!.size === 0) this.#most--;
    if (this.#most < least) return undefined;
    const [owner] = this.#bySize[this.#most]!;
    const own = this.#byOwner.get(owner!)!;
    const taken = which === 'oldest' ? own.shift() : own.pop();
    this.size--;
    this.#move(owner!, own.length + 1, own.length);
    return taken;
  }

  #move(owner: string, from: number, to: number): void {
    this.#bySize[from]?.delete(owner);
    this.#bySize[to] ??= new Set();
    this.#bySize[to].add(owner);
    this.#most = Math.max(this.#most, to);
  }
}

/** Announced nodes, by who has the places that they name: whose give way where there is no room for more. */
export class Crowd<One extends Checked> {
  /** Those that never answered, or do so no more. */
  readonly #silent = new Owners<One>();
  readonly #answering = new Owners<One>();
  readonly #silentMin: number;

  /**
   * @param services the oldest first
   * @param places for announced nodes
   */
  constructor(services: Iterable<One>, places: number) {
    this.#silentMin = Math.floor(SILENT_PART * places);
    for (const service of services)
      if (service.target.isForeign) (answers(service) ? this.#answering : this.#silent).add(service);
  }

  /** A newcomer. */
  add(service: One): void {
    this.#silent.add(service);
  }

  /**
   * Makes room for a node of an owner that has fewer than another one: among those that do not answer, and where these have only the places
   * that are left to them, among those that do, of which the newest goes. Whoever has the most loses one, but only where it still has as many
   * as the newcomer's owner then: else two of them would take each other's places without end.
   *
   * @returns whom to forget; undefined where the newcomer has to wait
   */
  giveWay(newcomerUrl: string): One | undefined {
    const owner = ownerOfUrl(newcomerUrl);
    const silent = this.#silent.countOf(owner);
    const given = this.#silent.takeFromMost(silent + 2, 'oldest');
    if (given || this.#silent.size >= this.#silentMin) return given;
    return this.#answering.takeFromMost(silent + this.#answering.countOf(owner) + 2, 'newest');
  }
}
