/** First flights as clients may cut them, for property tests and fuzzing. */

import { FRAME } from '../frames.ts';
import type { InitialShape } from './initials.ts';
import { cryptoFrame, initialDatagram } from './initials.ts';

type Random = (below: number) => number;

/** The message in pieces that begin at these places. */
export function cutAt(message: Uint8Array, places: readonly number[]): Uint8Array[] {
  const starts = [...new Set([0, ...places.map((place) => place % message.length)])].sort((a, b) => a - b);
  return starts.map((start, index) =>
    cryptoFrame(start, message.subarray(start, starts[index + 1] ?? message.length)),
  );
}

export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const left = [...items];
  return items.map(() => left.splice(random(left.length), 1)[0]!);
}

const PACKET_ROOM = 1000;
const FILLERS = [Uint8Array.of(FRAME.padding), Uint8Array.of(FRAME.ping), new Uint8Array(5)];

/** Frames in as many datagrams as they take, in their order, with PING and PADDING frames between them. */
export function inDatagrams(
  frames: readonly Uint8Array[],
  shape: Omit<InitialShape, 'payload'>,
  random: Random,
): Uint8Array[] {
  const datagrams: Uint8Array[][] = [];
  let room = 0;
  for (const frame of frames) {
    if (room < frame.length) {
      datagrams.push([]);
      room = PACKET_ROOM;
    }
    datagrams.at(-1)!.push(FILLERS[random(FILLERS.length)]!, frame);
    room -= frame.length;
  }
  return datagrams.map((part, number) => initialDatagram(part, { ...shape, number }));
}
