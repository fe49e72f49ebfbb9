import { type Client, FairSlots, type FairSlotsOptions, type HttpObserver, rangeKeyOf } from '@skerry/kit';
import { Flows, type Holdings, type Line } from './flows.ts';

/** Of the places of strangers, one in so many can be kept by slow ones, each of which has no other. */
const SPARED_PART = 2;

/** Given back when it is disposed of. */
export interface Place extends Disposable {
  /** Watches over what passes, until the place is given back: where nothing does, or too little while others wait, it is lost. */
  watch(line: Line): void;
}

/**
 * Places of clients that read or send files for as long as that takes. They wait for them in one line, and each has its share. Where
 * somebody waits for others, the slowest goes (flows.ts): it may come again for the rest, and waits for its turn as everybody does.
 */
export class Places {
  readonly #slots: FairSlots;
  readonly #flows: Flows;
  readonly #holdings: Holdings = {
    heldBy: (key) => this.#slots.heldBy(key),
    heldNear: (key) => this.#slots.heldNear(key),
  };

  /** @param onLetGo called for each that is ended */
  constructor(options: FairSlotsOptions, onLetGo: () => void) {
    this.#slots = new FairSlots({ ...options, networkOf: rangeKeyOf });
    const { total, reserve } = options.running;
    const sparedMax = Math.ceil((total - reserve) / SPARED_PART);
    this.#flows = new Flows({ onLook: () => this.#makeRoom(), onLetGo, sparedMax });
  }

  /** How many are taken. */
  get taken(): number {
    return this.#slots.running;
  }

  /** How many clients' requests wait for one. */
  get waiting(): number {
    return this.#slots.waiting;
  }

  /** Throws RATE_LIMITED, OVERLOADED; the signal's reason when it ends first. */
  async take(client: Pick<Client, 'key' | 'isExempt'>, signal: AbortSignal): Promise<Place> {
    const turn = this.#slots.take(client, signal);
    this.#makeRoom();
    const slot = await turn;
    let watch: Disposable | undefined;
    return {
      watch: (line) => {
        watch = this.#flows.watch(line, client, () => {
          this.#slots.noteServed(client);
          slot[Symbol.dispose]();
        });
      },
      [Symbol.dispose]: () => {
        watch?.[Symbol.dispose]();
        slot[Symbol.dispose]();
      },
    };
  }

  /** A place for whoever is next of those who wait for others, if there is one that it may be taken from: of one at a time. */
  #makeRoom(): void {
    const { next } = this.#slots;
    if (next) this.#flows.endSlowest(next, this.#holdings);
  }
}

export interface UploadLimits {
  /** Uploads that are received at once, of all clients. */
  readonly uploads: number;
  readonly uploadsPerClient: number;
}

/** Of the uploads at once, and of those that wait, one in so many is kept for exempt clients. */
const RESERVE_PART = 10;

/** Places of those who send files. As many may wait as may send. */
export function createUploadPlaces(
  { uploads, uploadsPerClient }: UploadLimits,
  observer: Pick<HttpObserver, 'letGo'>,
): Places {
  const share = {
    total: uploads,
    reserve: Math.floor(uploads / RESERVE_PART),
    perClient: uploadsPerClient,
  };
  const limits = { running: share, waiting: share, waitMs: 10_000, what: 'uploads', retryAfter: 10 };
  return new Places(limits, () => observer.letGo('sender'));
}
