/** First flights as clients may cut them, for property tests and fuzzing. */

import { helloMessage, joined } from '../../tls/testing/hello.ts';
import { FRAME } from '../frames.ts';
import { VERSION_1, VERSION_2, type Version } from '../packet.ts';
import {
  cryptoFrame,
  DESTINATION,
  type InitialShape,
  initialDatagram,
  longHead,
  varint,
} from './initials.ts';

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

const MAX_DAMAGE = 4;
const MAX_CUTS = 24;
const NAMES = ['a.example', 'farm-manage-desk-seek.skerry.localhost.', 'UPPER.Example', '', 'x'.repeat(255)];
/** Lengths, types and the bounds of numbers are where a parser goes wrong. */
const TELLING_BYTES = [0, 1, 2, 3, 6, 0x1c, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff];

function damageBytes(bytes: Uint8Array, random: Random, within: number): Uint8Array {
  const damaged = Uint8Array.from(bytes);
  for (let left = random(MAX_DAMAGE); left > 0; left--) {
    const at = random(Math.min(within, damaged.length) || 1);
    if (at < damaged.length) damaged[at] = TELLING_BYTES[random(TELLING_BYTES.length)]!;
  }
  return damaged;
}

/** A packet that comes early, with as many bytes as fit, or a piece of junk. */
const strangers = (random: Random): Uint8Array =>
  random(2) === 0
    ? new Uint8Array(random(60)).fill(0xff)
    : joined(longHead(0xd0, VERSION_1, DESTINATION, DESTINATION), varint(20), new Uint8Array(20));

/**
 * One flight, most of them damaged: in the hello, in the frames before they are sealed, or as the datagrams stand. Grown from a
 * real one or from one that is built.
 */
export function mutateFlight(random: Random, real: readonly (readonly Uint8Array[])[]): Uint8Array[] {
  if (random(4) === 0) {
    const flight = real[random(real.length)]!;
    return shuffled(flight, random).map((wire) => (random(2) === 0 ? damageBytes(wire, random, 60) : wire));
  }
  const name = random(6) === 0 ? undefined : NAMES[random(NAMES.length)];
  const hello = helloMessage({ serverName: name, keyShareBytes: random(3) === 0 ? 1216 : random(60) });
  const message = random(2) === 0 ? damageBytes(hello, random, 200) : hello;
  const frames = cutAt(
    message,
    Array.from({ length: random(MAX_CUTS) }, () => random(message.length)),
  );
  const sent =
    random(2) === 0 ? frames : shuffled([...frames, ...frames.slice(random(frames.length + 1))], random);
  const spoilt =
    random(3) === 0 ? sent.map((frame) => (random(4) ? frame : damageBytes(frame, random, 8))) : sent;
  const version: Version = random(2) === 0 ? VERSION_1 : VERSION_2;
  const shape = {
    version,
    numberBytes: (1 + random(4)) as 1 | 2 | 3 | 4,
    token: new Uint8Array(random(3) === 0 ? random(80) : 0),
  };
  const datagrams = inDatagrams(spoilt, shape, random);
  return datagrams.map((wire) => {
    if (random(6) === 0) return damageBytes(wire, random, 40);
    return random(6) === 0 ? joined(strangers(random), wire) : wire;
  });
}
