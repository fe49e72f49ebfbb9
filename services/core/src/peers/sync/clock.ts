import type { Logger } from '@skerry/kit';
import { LIMITS } from '@skerry/protocol';

/**
 * What a node makes of the clocks of its peers. Each clock is one vote, this server's own among them: what the median
 * says counts where more than half of them agree with it, so that no minority of liars moves a node.
 */

/** A clock that is further off than this is told, and corrected where a majority agrees. */
const CLOCK_OFF_MS = 60_000;
/** A correction ends below this, so that a clock at the limit is not corrected now and then. */
const CLOCK_WELL_MS = CLOCK_OFF_MS / 2;
/** A smaller change of the median changes no correction: time would not be even. */
const CORRECTION_STEP_MS = 5_000;
/** An answer that took longer says too little of the time. */
export const ROUND_TRIP_MAX_MS = 10_000;
/** What a peer's clock said counts so long. */
const READING_MAX_MS = 24 * 3_600_000;
/** A clock that moves so much against the machine's uptime was set. */
const JUMP_MS = 5_000;

/**
 * `unknown`: no peer told its time. `right`: most clocks agree with this server's. `off`: most agree on another time, and
 * messages are judged by that. `unsure`: no majority agrees; messages are judged by this server's clock.
 */
export type ClockState = 'unknown' | 'right' | 'off' | 'unsure';

export interface ClockComparison {
  readonly state: ClockState;
  /** What the median of the clocks has more than this server's; null where it is unknown. */
  readonly offsetMs: number | null;
  /** How many were compared, this server's among them. */
  readonly clocks: number;
}

const UNKNOWN: ClockComparison = { state: 'unknown', offsetMs: null, clocks: 1 };

/** The middle one; of two the one that is nearer to this server's. */
function medianOf(offsets: readonly number[]): number {
  const sorted = offsets.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.ceil(sorted.length / 2) - 1]!, sorted[Math.floor(sorted.length / 2)]!];
  return Math.abs(low) <= Math.abs(high) ? low : high;
}

/** @param peers what the clock of each peer has more than this server's */
export function decideClock(peers: readonly number[], wasOff = false): ClockComparison {
  if (peers.length === 0) return UNKNOWN;
  const all = [0, ...peers];
  const median = medianOf(all);
  const agreeing = all.filter((offset) => Math.abs(offset - median) <= CLOCK_OFF_MS).length;
  if (agreeing * 2 <= all.length) return { state: 'unsure', offsetMs: medianOf(peers), clocks: all.length };
  const isOff = Math.abs(median) > (wasOff ? CLOCK_WELL_MS : CLOCK_OFF_MS);
  return { state: isOff ? 'off' : 'right', offsetMs: median, clocks: all.length };
}

const NTP = 'turn on time synchronisation (for example "timedatectl set-ntp true")';

/** What is wrong and what to do about it; undefined where nothing is. */
export function adviseOnClock({ state, offsetMs, clocks }: ClockComparison): string | undefined {
  const seconds = Math.round(Math.abs(offsetMs ?? 0) / 1000);
  const side = (offsetMs ?? 0) > 0 ? 'behind' : 'ahead of';
  if (state === 'off')
    return `this server's clock is ${seconds} s ${side} the median of ${clocks} clocks, its own and its peers': ${NTP}; until then messages are judged by the median`;
  if (state === 'unsure')
    return `this server's clock is ${seconds} s ${side} the clocks of its peers, and no majority of the ${clocks} clocks agrees: ${NTP} here and on the peers; until then messages are judged by its own`;
  return undefined;
}

/** Beyond what a sender may be ahead when a message is taken: clocks are not read in the same moment. */
const AHEAD_MS = LIMITS.futureSeconds * 1000 + CLOCK_OFF_MS;

/**
 * Where no other clock tells the time, what the node has: messages ahead of a clock are refused, so one that it took says that the clock
 * went back, or was ahead then. Which of the two nobody here can say.
 * @param nowMs by which messages are judged
 * @param newestTime of the message that is dated last, Unix seconds
 */
export function adviseOnNewest(
  { state }: Pick<ClockComparison, 'state'>,
  nowMs: number,
  newestTime: number | undefined,
): string | undefined {
  const aheadMs = (newestTime ?? 0) * 1000 - nowMs;
  if (state !== 'unknown' || aheadMs <= AHEAD_MS) return undefined;
  const seconds = Math.round(aheadMs / 1000);
  return `this server's clock is ${seconds} s behind the newest message that the node has: if it is slow, the node refuses every new message; ${NTP}. If it is right, it was fast when that message came; a peer would tell`;
}

/** Whether an answer says the time: its peer's clock against the middle of the round trip. Undefined: it took too long. */
export function offsetOf(sentMs: number, receivedMs: number, theirMs: number): number | undefined {
  const roundTripMs = receivedMs - sentMs;
  if (roundTripMs < 0 || roundTripMs > ROUND_TRIP_MAX_MS) return undefined;
  return Math.round(theirMs - (sentMs + receivedMs) / 2);
}

export interface ClockOptions {
  /** This machine's clock, milliseconds since 1970. */
  readonly machineNow: () => number;
  /** Milliseconds since whenever; never set. */
  readonly uptime?: (() => number) | undefined;
  readonly log: Logger;
}

/** The time by which a node judges messages: its machine's, or the median of what its peers say where that is off. */
export class NetworkClock {
  readonly #options: ClockOptions;
  readonly #readings = new Map<string, { readonly offsetMs: number; readonly atMs: number }>();
  #comparison: ClockComparison = UNKNOWN;
  #correctionMs = 0;
  /** Whether the log has it that something is wrong. */
  #isTold = false;
  #base: number;
  /** Told when the time that `now` gives was moved, and by how many milliseconds: whole ones, since times that nodes tell are moved so. */
  onMoved: (movedMs: number) => void = () => {};

  constructor(options: ClockOptions) {
    this.#options = options;
    this.#base = options.machineNow() - this.uptime();
  }

  /** Milliseconds since whenever; never set. */
  uptime(): number {
    return (this.#options.uptime ?? performance.now.bind(performance))();
  }

  /** Milliseconds since 1970, corrected. */
  readonly now = (): number => this.machineNow() + this.#correctionMs;

  /** Milliseconds since 1970, as this server has it: what peers are told, so that no correction feeds another. */
  machineNow(): number {
    const now = this.#options.machineNow();
    const base = now - this.uptime();
    // The uptime has fractions.
    const jumpMs = Math.round(base - this.#base);
    this.#base = base;
    if (Math.abs(jumpMs) > JUMP_MS) {
      if (Math.abs(jumpMs) > CLOCK_OFF_MS) this.#tellJump(jumpMs);
      // What is known of others was measured against the clock before.
      this.#readings.clear();
      this.onMoved(jumpMs + this.#decide(now));
    }
    return now;
  }

  get comparison(): ClockComparison {
    return this.#comparison;
  }

  get correctionMs(): number {
    return this.#correctionMs;
  }

  note(peer: string, offsetMs: number): void {
    const now = this.machineNow();
    this.#readings.set(peer, { offsetMs, atMs: now });
    const movedMs = this.#decide(now);
    if (movedMs !== 0) this.onMoved(movedMs);
  }

  offsetOf(peer: string): number | null {
    return this.#readings.get(peer)?.offsetMs ?? null;
  }

  /** @returns by how much the correction changed */
  #decide(now: number): number {
    for (const [peer, { atMs }] of this.#readings)
      if (now - atMs > READING_MAX_MS) this.#readings.delete(peer);
    const { state: before } = this.#comparison;
    const correctedMs = this.#correctionMs;
    const offsets = [...this.#readings.values()].map(({ offsetMs }) => offsetMs);
    this.#comparison = decideClock(offsets, before === 'off');
    const { state, offsetMs } = this.#comparison;
    const correctionMs = state === 'off' ? offsetMs! : 0;
    if (Math.abs(correctionMs - this.#correctionMs) > CORRECTION_STEP_MS) this.#correctionMs = correctionMs;
    if (state !== before) this.#tell();
    return this.#correctionMs - correctedMs;
  }

  /** A node without peers has nobody to compare with: this is all that it learns of its clock. */
  #tellJump(jumpMs: number): void {
    const seconds = Math.round(Math.abs(jumpMs) / 1000);
    const side = jumpMs > 0 ? 'ahead' : 'back';
    const cause = jumpMs > 0 ? 'set, or the server was suspended' : 'set';
    this.#options.log.warn(
      { jump_ms: jumpMs },
      `this server's clock went ${side} by ${seconds} s: it was ${cause}; messages are judged by it`,
    );
  }

  #tell(): void {
    const { log } = this.#options;
    const { state, offsetMs, clocks } = this.#comparison;
    const facts = { offset_ms: offsetMs, clocks };
    const advice = adviseOnClock(this.#comparison);
    if (advice) log.warn(facts, advice);
    else if (state === 'right' && this.#isTold) log.info(facts, "most clocks agree with this server's again");
    if (state !== 'unknown') this.#isTold = advice !== undefined;
  }
}
