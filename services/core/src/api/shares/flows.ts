import type { Client } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';

const MINUTE_MS = 60_000;
/**
 * Looks in a minute: at each flow another number, so that no client knows when it is looked at. Until the first one, 5 to 10 s, nobody is
 * slow: whoever waits for a place would be refused before a minute had shown who is, and places that are taken anew each minute were
 * out of reach for ever.
 */
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
/** Seconds after which a sender that gave way is told to come back. */
const SENDER_RETRY_AFTER = 10;

type Asking = Pick<Client, 'key' | 'isExempt'>;

/** Bytes that a client takes or sends, for which it keeps a place until all have passed. */
export interface Flow {
  readonly client: Asking;
  /**
   * Bytes of the last minute, or as many as a minute brings at the rate since it began; undefined before the first look, and where it was
   * the client that waited: at most looks of that time. Not of all the time: buffers on the way hold megabytes, and whoever begins fast
   * could rest on that for hours.
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
 * its own network has no more than that afterwards. Where there is none either, and more than `sparedMax` are below FAIR_BYTES, a client of
 * whose network none has a place takes the slowest of these: as many networks as there are places kept all others out with little. Of
 * equals it is the first that is listed. Our own keep theirs, and however many they have, they come as if they had none. Pure.
 */
export function slowestOf<T extends Flow>(
  flows: Iterable<T>,
  coming: Asking,
  { heldBy, heldNear }: Holdings,
  sparedMax = Number.POSITIVE_INFINITY,
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
  const ofMost = slowestOfMost(strangers, heldBy, 2) ?? slowestOfMost(strangers, heldNear, near + 2);
  if (ofMost || near > 0) return ofMost;
  const spared = strangers.filter(({ passed }) => passed !== undefined && passed < FAIR_BYTES);
  return spared.length > sparedMax ? slowestOfMost(spared, () => 1, 1) : undefined;
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
  /** @param why whether others wait for its place, or nothing has passed */
  end(why: Why): void;
}

/** Why a flow is ended. */
export type Why = 'others wait for its place' | 'nothing passes';

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
    end(why) {
      log.debug(`a reader is ended: ${why}`);
      socket.destroy();
    },
  };
}

/**
 * Of whoever sends a body. A part of a file would go on where it ended; whoever only holds places sends forms, so it is spared too.
 * @param refuse answers it
 */
export function sendingLine(
  { raw, log }: Pick<FastifyRequest, 'raw' | 'log'>,
  refuse: (error: AppError) => void,
): Line {
  return {
    isWhole: true,
    passed: () => raw.socket.bytesRead,
    isClientsTurn: () => raw.readableLength === 0 && !raw.complete,
    isOver: () => raw.complete,
    end(why) {
      log.debug(`a sender is ended: ${why}`);
      refuse(why === 'nothing passes' ? silent() : displaced());
    },
  };
}

const silent = () => new AppError('REQUEST_TIMEOUT', 'nothing more of the body came for a minute');

const displaced = () =>
  new AppError(
    'OVERLOADED',
    `others wait to send files, and this one gave way: of its kind it was the slowest (${FAIR_BYTES / 1024 ** 2} MiB a minute are not slow), or its client or network had the most`,
    { details: { retry_after: SENDER_RETRY_AFTER } },
  );

interface Watched extends Flow {
  passed: number | undefined;
  keptBy: number;
  isOver(): boolean;
  end(why: Why): void;
}

/** What one look saw. */
interface Look {
  /** Bytes that had passed by then, and by the look before. */
  readonly bytes: number;
  readonly before: number;
  readonly isBehind: boolean;
}

/** Bytes that a minute brings as it was at these looks, of which a minute has `inMinute`; undefined where most of them saw no delay of the client. Pure. */
function rateOf(seen: readonly Look[], inMinute: number): number | undefined {
  const behind = seen.filter(({ isBehind }) => isBehind).length;
  if (behind * 2 < seen.length) return undefined;
  return ((seen.at(-1)!.bytes - seen[0]!.before) * inMinute) / seen.length;
}

export interface FlowsOptions {
  /** Called each time that one of them was looked at. */
  readonly onLook?: () => void;
  /** Called for each that is ended. */
  readonly onLetGo?: () => void;
  /** How many below FAIR_BYTES keep the only place of their clients at most, where a client comes that has none. */
  readonly sparedMax?: number | undefined;
  readonly random?: () => number;
}

/** Flows that keep places: one that stands still loses its place, and so does the slowest where others wait for it. */
export class Flows {
  /** What has had its place for longest comes first. */
  readonly #all = new Set<Watched>();
  readonly #onLook: () => void;
  readonly #onLetGo: () => void;
  readonly #sparedMax: number | undefined;
  readonly #random: () => number;

  constructor({ onLook = () => {}, onLetGo = () => {}, sparedMax, random = Math.random }: FlowsOptions = {}) {
    this.#onLook = onLook;
    this.#onLetGo = onLetGo;
    this.#sparedMax = sparedMax;
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
    const end = (why: Why) => {
      stop();
      giveBack();
      this.#onLetGo();
      line.end(why);
    };
    const keptBy = line.isWhole ? WHOLE_BYTES : FAIR_BYTES;
    const watched: Watched = { client, passed: undefined, keptBy, isOver: () => line.isOver(), end };
    const looks = LOOKS.least + Math.floor(this.#random() * (LOOKS.most - LOOKS.least + 1));
    const everyMs = Math.floor(MINUTE_MS / looks);
    let count = 0;
    let before = line.passed();
    // The looks of the last minute.
    const seen: Look[] = [];
    // At the end of the minute before.
    let [endBytes, wasBehind] = [before, false];
    const timer = setInterval(() => {
      const isBehind = line.isClientsTurn();
      const bytes = line.passed();
      seen.push({ bytes, before, isBehind });
      before = bytes;
      if (seen.length > looks) seen.shift();
      watched.passed = rateOf(seen, looks);
      if (++count >= WHOLE_MINUTES * looks) watched.keptBy = FAIR_BYTES;
      if (count % looks === 0) {
        if (isBehind && wasBehind && bytes === endBytes) end('nothing passes');
        [endBytes, wasBehind] = [bytes, isBehind];
      }
      this.#onLook();
    }, everyMs).unref();
    this.#all.add(watched);
    return { [Symbol.dispose]: stop };
  }

  /** Ends the slowest for a client that comes (slowestOf). @returns whether there was one */
  endSlowest(coming: Asking, holdings: Holdings): boolean {
    const under = [...this.#all].filter((flow) => !flow.isOver());
    const slowest = slowestOf(under, coming, holdings, this.#sparedMax);
    slowest?.end('others wait for its place');
    return slowest !== undefined;
  }
}
