import type { Socket } from 'node:net';
import type { Client } from '@skerry/kit';
import type { FastifyReply } from 'fastify';

const LOOK_MS = 60_000;

type Asking = Pick<Client, 'key' | 'isExempt'>;

/** A reader that keeps a place until it has taken what it asked for. */
export interface Taker {
  readonly client: Asking;
  /**
   * Bytes of the last minute; undefined before the first has passed, and where it was the reader that waited for bytes. Not of all the
   * time: buffers on the way take megabytes at once, and whoever begins fast could rest on that for hours.
   */
  readonly taken: number | undefined;
}

/**
 * How many places a client has that loses one to a client that has `held`: once it has lost it, as many as that has then, so that no two
 * displace each other in turn. Whoever has none at all comes before everybody who has one.
 */
const leastOf = (held: number) => (held === 0 ? 1 : held + 2);

/**
 * Who loses its place to a client that has `held` of them: the slowest of those whose clients have enough (leastOf). Of equals it is the
 * first that is listed; our own keep theirs. Pure.
 */
export function slowestOf<T extends Taker>(
  takers: Iterable<T>,
  held: number,
  heldBy: (key: string) => number,
): T | undefined {
  const least = leastOf(held);
  let slowest: T | undefined;
  for (const taker of takers) {
    const { client, taken } = taker;
    if (taken === undefined || client.isExempt || heldBy(client.key) < least) continue;
    if (slowest?.taken === undefined || taken < slowest.taken) slowest = taker;
  }
  return slowest;
}

interface Watched extends Taker {
  taken: number | undefined;
  end(reason: string): void;
}

/** What has left for the kernel, in bytes. */
const takenFrom = (socket: Socket) => socket.bytesWritten - socket.writableLength;

/** Readers that keep places: whoever takes nothing loses its place, and so does the slowest where others wait for it. */
export class Takers {
  /** Whoever has had its place for longest comes first. */
  readonly #all = new Set<Watched>();
  readonly #onLook: () => void;

  /** @param onLook called each time that one of them was looked at, a minute after the last */
  constructor(onLook: () => void = () => {}) {
    this.#onLook = onLook;
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
    let before = takenFrom(socket);
    let wasBehind = false;
    const timer = setInterval(() => {
      const now = takenFrom(socket);
      // What comes slowly is no fault of whoever reads it.
      const isBehind = socket.writableLength > 0;
      if (isBehind && wasBehind && now === before) end('it takes nothing');
      watched.taken = isBehind ? now - before : undefined;
      [before, wasBehind] = [now, isBehind];
      this.#onLook();
    }, LOOK_MS).unref();
    this.#all.add(watched);
    return { [Symbol.dispose]: stop };
  }

  /** Ends the slowest reader for a client that has `held` places (slowestOf). @returns whether there was one */
  endSlowest(held: number, heldBy: (key: string) => number): boolean {
    const slowest = slowestOf(this.#all, held, heldBy);
    slowest?.end('others wait for its place');
    return slowest !== undefined;
  }
}
