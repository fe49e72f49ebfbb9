/**
 * What a node thinks of those that send it messages. Faults count until they are forgotten, a point a minute; who has too
 * many is not listened to until enough are forgotten. A failure of the network, or of this node, is no fault.
 */
const FORGERY_POINTS = 10;
const MISBEHAVIOUR_POINTS = 20;
const POINTS_MAX = 200;
/** From here on a sender is not listened to. */
const BANNED_POINTS = 50;
const FORGOTTEN_PER_MS = 1 / 60_000;
/** Senders that are remembered: the oldest are forgotten first. */
const SENDERS_MAX = 1_000;

interface Record {
  points: number;
  atMs: number;
}

export class Reputation {
  readonly #records = new Map<string, Record>();
  readonly #now: () => number;

  /** @param now milliseconds since whenever; never set */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** 0: nothing against it. */
  pointsOf(sender: string): number {
    const record = this.#records.get(sender);
    if (!record) return 0;
    return Math.max(0, record.points - Math.max(0, this.#now() - record.atMs) * FORGOTTEN_PER_MS);
  }

  isBanned(sender: string): boolean {
    return this.pointsOf(sender) >= BANNED_POINTS;
  }

  listBanned(): string[] {
    return [...this.#records.keys()].filter((sender) => this.isBanned(sender));
  }

  #add(sender: string, points: number): void {
    const next = Math.min(POINTS_MAX, this.pointsOf(sender) + points);
    this.#records.delete(sender);
    this.#records.set(sender, { points: next, atMs: this.#now() });
    const oldest = this.#records.keys().next();
    if (this.#records.size > SENDERS_MAX && !oldest.done) this.#records.delete(oldest.value);
  }

  /** It sent messages that nobody signed. */
  noteForged(sender: string, count: number): void {
    if (count > 0) this.#add(sender, count * FORGERY_POINTS);
  }

  /** It answered what is no answer. */
  noteMisbehaved(sender: string): void {
    this.#add(sender, MISBEHAVIOUR_POINTS);
  }
}
