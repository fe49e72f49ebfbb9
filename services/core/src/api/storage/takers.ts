import type { Socket } from 'node:net';
import type { Client } from '@skerry/kit';
import type { FastifyReply } from 'fastify';

const MINUTE_MS = 60_000;
/** Looks in a minute: of each reader another number, so that none knows when it is looked at. */
const LOOKS = { least: 6, most: 12 } as const;
/** Bytes: whoever takes as many in a minute (70 kB/s) is not slow, and keeps the last place that its client has. */
export const FAIR_BYTES = 4 * 1024 * 1024;

type Asking = Pick<Client, 'key' | 'isExempt'>;

/** A reader that keeps a place until it has taken what it asked for. */
export interface Taker {
  readonly client: Asking;
  /**
   * Bytes of the last minute; undefined before the first has passed, and where it was the reader that waited for bytes: at most looks
   * of that minute. Not of all the time: buffers on the way take megabytes at once, and whoever begins fast could rest on that for hours.
   */
  readonly taken: number | undefined;
}

/**
 * How many places a client has that loses one to a client that has `held`: once it has lost it, as many as that has then, so that no two
 * displace each other in turn. Whoever has none at all comes before everybody who has one.
 */
const leastOf = (held: number) => (held === 0 ? 1 : held + 2);

/** Of the readers whose clients have `least` or more, one of the client that has most, and of these the slowest. */
function slowestOfMost<T extends Taker>(
  takers: Iterable<T>,
  heldBy: (key: string) => number,
  least: number,
): T | undefined {
  let most = least;
  let slowest: T | undefined;
  for (const taker of takers) {
    const held = heldBy(taker.client.key);
    if (taker.taken === undefined || held < most) continue;
    if (held === most && slowest?.taken !== undefined && slowest.taken <= taker.taken) continue;
    [slowest, most] = [taker, held];
  }
  return slowest;
}

/**
 * Who loses its place to a client that comes: of the slow readers whose clients have enough (leastOf) one of the client that has most,
 * and of these the slowest. Where none is slow, a client that has none takes a place of one that has several. Of equals it is the first
 * that is listed. Our own keep theirs, and however many they have, they come as if they had none. Pure.
 */
export function slowestOf<T extends Taker>(
  takers: Iterable<T>,
  coming: Asking,
  heldBy: (key: string) => number,
): T | undefined {
  const counted = coming.isExempt ? 0 : heldBy(coming.key);
  const strangers = [...takers].filter(({ client }) => !client.isExempt);
  const slow = strangers.filter(({ taken }) => taken !== undefined && taken < FAIR_BYTES);
  return (
    slowestOfMost(slow, heldBy, leastOf(counted)) ??
    (counted === 0 ? slowestOfMost(strangers, heldBy, 2) : undefined)
  );
}

interface Watched extends Taker {
  taken: number | undefined;
  end(reason: string): void;
}

/** What has left for the kernel, in bytes. */
const takenFrom = (socket: Socket) => socket.bytesWritten - socket.writableLength;

export interface TakersOptions {
  /** Called each time that a minute of one of them has passed. */
  readonly onMinute?: () => void;
  readonly random?: () => number;
}

/** Readers that keep places: whoever takes nothing loses its place, and so does the slowest where others wait for it. */
export class Takers {
  /** Whoever has had its place for longest comes first. */
  readonly #all = new Set<Watched>();
  readonly #onMinute: () => void;
  readonly #random: () => number;

  constructor({ onMinute = () => {}, random = Math.random }: TakersOptions = {}) {
    this.#onMinute = onMinute;
    this.#random = random;
  }

  /**
   * Watches over a reader until it is disposed of, and ends it after a minute or two in which it takes nothing.
   * @param giveBack gives its place back
   */
  watch({ request, log }: FastifyReply, client: Asking, giveBack: () => void): Disposable {
    // The connection's, not the answer's: one that waits behind another of its connection is as slow as that.
    const { socket } = request.raw;
    const stop = () => {
      clearInterval(timer);
      this.#all.delete(watched);
    };
    const end = (reason: string) => {
      log.debug(`a reader is ended: ${reason}`);
      stop();
      giveBack();
      socket.destroy();
    };
    const watched: Watched = { client, taken: undefined, end };
    const looks = LOOKS.least + Math.floor(this.#random() * (LOOKS.most - LOOKS.least + 1));
    const everyMs = Math.floor(MINUTE_MS / looks);
    let count = 0;
    let before = takenFrom(socket);
    // Looks of this minute at which something waited to be taken; whether something did at the end of the one before.
    let [behind, wasBehind] = [0, false];
    const timer = setInterval(() => {
      // What comes slowly is no fault of whoever reads it.
      const hasBytes = socket.writableLength > 0;
      if (hasBytes) behind++;
      if (++count % looks !== 0) return;
      const now = takenFrom(socket);
      if (hasBytes && wasBehind && now === before) end('it takes nothing');
      watched.taken = behind * 2 >= looks ? now - before : undefined;
      [before, wasBehind, behind] = [now, hasBytes, 0];
      this.#onMinute();
    }, everyMs).unref();
    this.#all.add(watched);
    return { [Symbol.dispose]: stop };
  }

  /** Ends the slowest reader for a client that comes (slowestOf). @returns whether there was one */
  endSlowest(coming: Asking, heldBy: (key: string) => number): boolean {
    const slowest = slowestOf(this.#all, coming, heldBy);
    slowest?.end('others wait for its place');
    return slowest !== undefined;
  }
}
