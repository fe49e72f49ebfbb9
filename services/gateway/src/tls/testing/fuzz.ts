import { ClientHelloReader, type HelloAnswer } from '../client-hello.ts';
import { helloMessage, inRecords, joined } from './hello.ts';
import type { CutHello } from './native-reader.ts';

/** Numbers that the same seed gives again (mulberry32). */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const MAX_DAMAGE = 6;
const MAX_CUTS = 8;
const NAMES = [
  'a.example',
  'farm-manage-desk-seek.skerry.localhost.',
  'UPPER.Example',
  '',
  '.',
  'x'.repeat(255),
];
/** Lengths and types are where a parser goes wrong. */
const TELLING_BYTES = [0, 1, 2, 3, 22, 0x10, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff];

/** One damaged hello, grown from a real one or from one that is built, and where it is cut. */
export function mutate(random: (below: number) => number, corpus: readonly Uint8Array[]): CutHello {
  const built = () =>
    inRecords(
      helloMessage({
        serverName: random(5) === 0 ? undefined : NAMES[random(NAMES.length)],
        sessionIdBytes: random(33),
        keyShareBytes: random(1300),
      }),
      random(3) === 0 ? 1 + random(400) : 2 ** 14,
    );
  const origin = random(2) === 0 ? corpus[random(corpus.length)] : undefined;
  let wire: Uint8Array = Uint8Array.from(origin ?? built());
  for (let damage = random(MAX_DAMAGE); damage > 0; damage--) wire = damageOnce(random, wire);
  const cuts = Array.from({ length: random(MAX_CUTS) }, () => random(wire.length + 1));
  return { wire, ends: [...cuts.sort((a, b) => a - b), wire.length] };
}

function damageOnce(random: (below: number) => number, wire: Uint8Array): Uint8Array {
  const at = random(wire.length + 1);
  switch (random(5)) {
    case 0:
      return wire.slice(0, at);
    case 1:
      return joined(wire.subarray(0, at), Uint8Array.of(random(256)), wire.subarray(at));
    case 2:
      return joined(wire.subarray(0, at), wire.subarray(Math.min(wire.length, at + 1 + random(4))));
    default: {
      const copy = Uint8Array.from(wire);
      // The head of a hello holds its lengths: hit it more often.
      const place = random(2) === 0 ? random(Math.min(copy.length, 200) || 1) : at;
      if (place < copy.length) copy[place] = TELLING_BYTES[random(TELLING_BYTES.length)]!;
      return copy;
    }
  }
}

/** What our reader says, asked as often as the native one. The reason of what is malformed is left out. */
export function readCut({ wire, ends }: CutHello): HelloAnswer {
  const reader = new ClientHelloReader();
  let answer: HelloAnswer = { kind: 'need_more' };
  let have = 0;
  for (const end of ends) {
    if (answer.kind === 'need_more' && end > have) answer = reader.push(wire.subarray(have, end));
    have = end;
  }
  return answer.kind === 'malformed' ? { kind: 'malformed', reason: '' } : answer;
}
