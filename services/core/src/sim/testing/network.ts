import { AppError } from '@skerry/protocol';
import type { PeerLink } from '../../peers/sync/link.ts';
import type { SeededDice } from './dice.ts';

/** What the virtual network does to whatever crosses it. */
export interface Weather {
  /** Chance that a call or a gossiped message is lost. */
  loss: number;
  /** Chance that a gossiped message comes twice. */
  duplication: number;
  /** Chance that messages are changed on their way, as by a peer that forges. */
  forgery: number;
  /** At most; gossip overtakes itself. */
  delayMs: number;
}

export const STORM: Weather = { loss: 0.15, duplication: 0.1, forgery: 0.05, delayMs: 20_000 };
export const CALM: Weather = { loss: 0, duplication: 0, forgery: 0, delayMs: 0 };

/** What it cost. */
export interface Traffic {
  calls: number;
  rangeBytes: number;
  messageBytes: number;
}

/** Peers that lie about the time are up to half of this off. */
const CLOCK_LIE_MS = 24 * 3_600_000;

const gone = (name: string) => new AppError('UPSTREAM_UNAVAILABLE', `${name} does not answer`);

/** One message as somebody would change it who cannot sign. */
export function forge(frame: Buffer, dice: SeededDice): Buffer {
  const copy = Buffer.from(frame);
  const at = dice.below(copy.length);
  copy[at] = copy[at]! ^ (1 + dice.below(255));
  return copy;
}

/** The way from one node to another, through the weather. */
export function throughWeather(
  link: PeerLink,
  world: { readonly weather: Weather; readonly traffic: Traffic; readonly dice: SeededDice },
  isReachable: () => boolean,
): PeerLink {
  const { traffic, dice } = world;
  const cross = async <T>(call: () => Promise<T>): Promise<T> => {
    traffic.calls++;
    if (!isReachable() || dice.chance(world.weather.loss)) throw gone(link.name);
    const answer = await call();
    // The answer may be lost, too.
    if (dice.chance(world.weather.loss)) throw gone(link.name);
    return answer;
  };
  const carry = (frames: Buffer[]) => {
    traffic.messageBytes += frames.reduce((sum, { length }) => sum + length, 0);
    return dice.chance(world.weather.forgery) ? frames.map((frame) => forge(frame, dice)) : frames;
  };
  return {
    name: link.name,
    greet: async (signal) => {
      const greeting = await cross(() => link.greet(signal));
      if (!greeting.clock || !dice.chance(world.weather.forgery)) return greeting;
      const lieMs = Math.floor((dice.next() - 0.5) * CLOCK_LIE_MS);
      return { ...greeting, clock: { ...greeting.clock, timeMs: greeting.clock.timeMs + lieMs } };
    },
    askRanges: async (question, signal, of) => {
      const answered = await cross(() => link.askRanges(question, signal, of));
      traffic.rangeBytes += answered.sizeBytes;
      return answered;
    },
    fetchMessages: async (keys, signal) => carry(await cross(() => link.fetchMessages(keys, signal))),
    fetchPage: async (place, signal) => {
      const { frames, next } = await cross(() => link.fetchPage(place, signal));
      return { frames: carry(frames), next };
    },
    offer: (texts, signal) =>
      cross(() => link.offer(carry(texts.map((text) => Buffer.from(text))).map(String), signal)),
  };
}
