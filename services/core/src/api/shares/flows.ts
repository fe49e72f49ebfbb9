import type { Client } from '@skerry/kit';
import type { FastifyReply, FastifyRequest } from 'fastify';

const MINUTE_MS = 60_000;
/** Looks in a minute: at each flow another number, so that no client knows when it is looked at. */
const LOOKS = { least: 6, most: 12 } as const;
/** Bytes: a flow of as many in a minute (70 kB/s) is not slow, and keeps the last place that its client has. */
export const FAIR_BYTES = 4 * 1024 * 1024;
/**
 * Bytes: one that has to begin anew where it is ended keeps the last place of its client for as many in a minute (4 kB/s), through its
 * first minutes: the two slowest would displace each other in turn, and neither would ever be done. A reader that can ask for the rest
 * is none of them: what it has, it keeps.
 */
export const WHOLE_BYTES = 256 * 1024;
export const WHOLE_MINUTES = 10;

type Asking = Pick<Client, 'key' | 'isExempt'>;

/** Bytes that a client takes or sends, for which it keeps a place until all have passed. */
export interface Flow {
  readonly client: Asking;
  /**
   * Bytes of the last minute; undefined before the first has passed, and where it was the client that waited: at most looks of that
   * minute. Not of all the time: buffers on the way hold megabytes, and whoever begins fast could rest on that for hours.
   */
  readonly passed: number | undefined;
  /** Bytes of a minute by which it keeps the last place that its client has: FAIR_BYTES or WHOLE_BYTES. */
  readonly keptBy: number;
}

/**
 * How many places a client has that loses one to a client that has `held`: once it has lost it, as many as that has then, so that no two
 * displace each other in turn. Whoever has none at all comes before everybody who has one.
 */
const leastOf = (held: number) => (held === 0 ? 1 : held + 2);

/** How many places clients have, by their keys. */
export interface Holdings {
  readonly heldBy: (key: string) => number;
  /** With all that are of its network. */
  readonly heldNear: (key: string) => number;
}

/** Of the flows whose clients have `least` or more, one of the client that has most, and of these the slowest. */
function slowestOfMost<T extends Flow>(
  flows: Iterable<T>,
  heldBy: (key: string) => number,
  least: number,
): T | undefined {
  let most = least;
  let slowest: T | undefined;
  for (const flow of flows) {
    const held = heldBy(flow.client.key);
    if (flow.passed === undefined || held < most) continue;
    if (held === most && slowest?.passed !== undefined && slowest.passed <= flow.passed) continue;
    [slowest, most] = [flow, held];
  }
  return slowest;
}

/**
 * Which loses its place to a client that comes: of the slow flows whose clients have enough (leastOf) one of the client that has most,
 * and of these the slowest. One that is all that its client has is slow below `keptBy`, others below FAIR_BYTES. Where none is slow, a
 * client that has none takes a place of one that has several; where there is no such client either, one of the network that has most, if
 * its own network has no more than that afterwards. Of equals it is the first that is listed. Our own keep theirs, and however many they
 * have, they come as if they had none. Pure.
 */
export function slowestOf<T extends Flow>(
  flows: Iterable<T>,
  coming: Asking,
  { heldBy, heldNear }: Holdings,
): T | undefined {
  const counted = coming.isExempt ? 0 : heldBy(coming.key);
  const near = coming.isExempt ? 0 : heldNear(coming.key);
  const strangers = [...flows].filter(({ client }) => !client.isExempt);
  const slow = strangers.filter(
    ({ client, passed, keptBy }) =>
      passed !== undefined && passed < (heldBy(client.key) > 1 ? FAIR_BYTES : keptBy),
  );
  const slowest = slowestOfMost(slow, heldBy, leastOf(counted));
  if (slowest || counted > 0) return slowest;
  return slowestOfMost(strangers, heldBy, 2) ?? slowestOfMost(strangers, heldNear, near + 2);
}

/** The connection of a flow: what passes, and which side waits for the other. */
export interface Line {
  /** Bytes until now. */
  passed(): number;
  /** Whether the client is waited for now: what keeps us is no fault of its. */
  isClientsTurn(): boolean;
  /** Whether all has passed: the place is on its way back. */
  isOver(): boolean;
  /** Whether all that has passed was for nothing where it is ended. */
  readonly isWhole: boolean;
  end(reason: string): void;
}

/**
 * Of whoever reads an answer: the connection's, since an answer behind another one of its connection is as slow as that.
 * @param isWhole an answer of which the rest cannot be asked for
 */
export function readingLine(
  { request, raw, log }: Pick<FastifyReply, 'request' | 'raw' | 'log'>,
  { isWhole = false } = {},
): Line {
  const { socket } = request.raw;
  return {
    isWhole,
    // What has left for the kernel.
    passed: () => socket.bytesWritten - socket.writableLength,
    // What waits behind another answer is not with the connection yet.
    isClientsTurn: () => socket.writableLength > 0 || raw.writableLength > 0,
    isOver: () => raw.writableFinished,
    end(reason) {
      log.debug(`a reader is ended: ${reason}`);
      socket.destroy();
    },
  };
}

/** Of whoever sends a body. A part of a file would go on where it ended; whoever only holds places sends forms, so it is spared too. */
export function sendingLine({ raw, log }: Pick<FastifyRequest, 'raw' | 'log'>): Line {
  return {
    isWhole: true,
    passed: () => raw.socket.bytesRead,
    isClientsTurn: () => raw.readableLength === 0 && !raw.complete,
    isOver: () => raw.complete,
    end(reason) {
      log.debug(`a sender is ended: ${reason}`);
      // As if the client had left: what reads the body hears the same.
      raw.socket.destroy();
    },
  };
}

interface Watched extends Flow {
  passed: number | undefined;
  keptBy: number;
  isOver(): boolean;
  end(reason: string): void;
}

export interface FlowsOptions {
  /** Called each time that a minute of one of them has passed. */
  readonly onMinute?: () => void;
  /** Called for each that is ended. */
  readonly onLetGo?: () => void;
  readonly random?: () => number;
}

/** Flows that keep places: one that stands still loses its place, and so does the slowest where others wait for it. */
export class Flows {
  /** What has had its place for longest comes first. */
  readonly #all = new Set<Watched>();
  readonly #onMinute: () => void;
  readonly #onLetGo: () => void;
  readonly #random: () => number;

  constructor({ onMinute = () => {}, onLetGo = () => {}, random = Math.random }: FlowsOptions = {}) {
    this.#onMinute = onMinute;
    this.#onLetGo = onLetGo;
    this.#random = random;
  }

  /**
   * Watches over a flow until it is disposed of, and ends it after a minute or two in which its client lets nothing pass.
   * @param giveBack gives its place back
   */
  watch(line: Line, client: Asking, giveBack: () => void): Disposable {
    const stop = () => {
      clearInterval(timer);
      this.#all.delete(watched);
    };
    const end = (reason: string) => {
      stop();
      giveBack();
      this.#onLetGo();
      line.end(reason);
    };
    const keptBy = line.isWhole ? WHOLE_BYTES : FAIR_BYTES;
    const watched: Watched = { client, passed: undefined, keptBy, isOver: () => line.isOver(), end };
    const looks = LOOKS.least + Math.floor(this.#random() * (LOOKS.most - LOOKS.least + 1));
    const everyMs = Math.floor(MINUTE_MS / looks);
    let count = 0;
    let before = line.passed();
    // Looks of this minute at which it was the client's turn; whether it was at the end of the one before.
    let [behind, wasBehind] = [0, false];
    const timer = setInterval(() => {
      const isBehind = line.isClientsTurn();
      if (isBehind) behind++;
      if (++count % looks !== 0) return;
      const now = line.passed();
      if (isBehind && wasBehind && now === before) end('nothing passes');
      watched.passed = behind * 2 >= looks ? now - before : undefined;
      if (count >= WHOLE_MINUTES * looks) watched.keptBy = FAIR_BYTES;
      [before, wasBehind, behind] = [now, isBehind, 0];
      this.#onMinute();
    }, everyMs).unref();
    this.#all.add(watched);
    return { [Symbol.dispose]: stop };
  }

  /** Ends the slowest for a client that comes (slowestOf). @returns whether there was one */
  endSlowest(coming: Asking, holdings: Holdings): boolean {
    const under = [...this.#all].filter((flow) => !flow.isOver());
    const slowest = slowestOf(under, coming, holdings);
    slowest?.end('others wait for its place');
    return slowest !== undefined;
  }
}
